package walras.peer;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** A member as the parent process sees it. */
final class Member {
    /** Places of a member's endpoints in Aeron's list of members. */
    static final int INGRESS = 1;
    static final int ARCHIVE = 5;
    static final int ENDPOINTS = 5;

    final int id;
    private final Process process;
    private final Path log;
    private final BufferedReader answers;
    private final OutputStream questions;

    Member(int id, List<String> command, Path log) throws IOException {
        this.id = id;
        this.log = log;
        process = new ProcessBuilder(command).redirectError(log.toFile()).start();
        answers = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
        questions = process.getOutputStream();
    }

    /** What the service of a member has come to. */
    record State(long commands, long hash, long term, String role) {}

    State state() throws RunFailed {
        try {
            questions.write('\n');
            questions.flush();
            String answer = answers.readLine();
            if (answer != null) {
                String[] words = answer.split(" ");
                return new State(Long.parseLong(words[1]), Long.parseLong(words[2]), Long.parseLong(words[3]), words[4]);
            }
        } catch (IOException gone) {
            // Said below.
        }
        throw new RunFailed("member " + id + " is gone; it wrote last: " + lastWords());
    }

    boolean isAlive() {
        return process.isAlive();
    }

    String lastWords() {
        try {
            List<String> lines = Files.readAllLines(log);
            return String.join("\n", lines.subList(Math.max(0, lines.size() - 15), lines.size()));
        } catch (IOException unreadable) {
            return "(unreadable: " + unreadable + ")";
        }
    }

    void stop() {
        try {
            questions.close();
            if (process.waitFor(5, TimeUnit.SECONDS)) {
                return;
            }
        } catch (IOException gone) {
            // What is wanted.
        } catch (InterruptedException hurried) {
            Thread.currentThread().interrupt();
        }
        process.destroyForcibly();
        process.onExit().join();
    }

    static String endpointOf(String members, int member, int place) {
        return members.split("\\|")[member].split(",")[place];
    }
}
