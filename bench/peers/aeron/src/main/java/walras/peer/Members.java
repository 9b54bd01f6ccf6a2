package walras.peer;

import java.io.IOException;
import java.lang.ProcessHandle.Info;
import java.net.DatagramSocket;
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** A cluster on loopback: a process a member, their folders, and an end to all of it. */
final class Members implements AutoCloseable {
    private static final Path SHARED_MEMORY = Path.of("/dev/shm");

    private final Path disk;
    private final Path memory;
    private final List<Member> members = new ArrayList<>();
    final String ingressEndpoints;

    static Members start(String[] args, Options options) throws BadInput, RunFailed {
        try {
            return new Members(args, options);
        } catch (IOException failed) {
            throw new BadInput("the cluster's folders or processes cannot be made (" + failed + "); check the space in " + options.dir + " and in "
                    + SHARED_MEMORY + ".");
        }
    }

    private Members(String[] args, Options options) throws IOException {
        disk = Files.createTempDirectory(options.dir, "aeron-peer-");
        memory = Files.createTempDirectory(Files.isDirectory(SHARED_MEMORY) ? SHARED_MEMORY : disk, "aeron-peer-");
        // Also when this process is told to end.
        Runtime.getRuntime().addShutdownHook(new Thread(this::close));
        List<String> endpoints = freeEndpoints(options.members * Member.ENDPOINTS);
        String list = IntStream.range(0, options.members)
                .mapToObj(id -> id + "," + String.join(",", endpoints.subList(id * Member.ENDPOINTS, (id + 1) * Member.ENDPOINTS)))
                .collect(Collectors.joining("|"));
        ingressEndpoints = IntStream.range(0, options.members)
                .mapToObj(id -> id + "=" + Member.endpointOf(list, id, Member.INGRESS))
                .collect(Collectors.joining(","));
        for (int id = 0; id < options.members; id++) {
            Path folder = Files.createDirectory(disk.resolve("member" + id));
            List<String> command = new ArrayList<>(sameJava());
            command.addAll(List.of("node", String.valueOf(id), list, memory.toString(), folder.toString()));
            command.addAll(List.of(args));
            members.add(new Member(id, command, folder.resolve("log")));
        }
    }

    /** This JVM's own program, options and class. */
    private static List<String> sameJava() {
        Info info = ProcessHandle.current().info();
        List<String> command = new ArrayList<>();
        command.add(info.command().orElse("java"));
        command.addAll(java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments());
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), Main.class.getName()));
        return command;
    }

    /** Kept open together, so that they differ; given back before the members take them. */
    private static List<String> freeEndpoints(int count) throws IOException {
        List<DatagramSocket> sockets = new ArrayList<>();
        try {
            for (int index = 0; index < count; index++) {
                sockets.add(new DatagramSocket(0, InetAddress.getLoopbackAddress()));
            }
            return sockets.stream().map(socket -> "127.0.0.1:" + socket.getLocalPort()).toList();
        } finally {
            sockets.forEach(DatagramSocket::close);
        }
    }

    String clientDriverDir() {
        return memory.resolve("client").toString();
    }

    void checkAlive() throws RunFailed {
        for (Member member : members) {
            if (!member.isAlive()) {
                throw new RunFailed("member " + member.id + " ended; it wrote last: " + member.lastWords());
            }
        }
    }

    /** The term in which all members follow one leader. */
    long term() throws RunFailed {
        List<Member.State> states = states();
        if (states.stream().filter(state -> state.role().equals("LEADER")).count() != 1) {
            throw new RunFailed("no single member leads: " + states + "; look whether something else keeps the machine busy.");
        }
        return states.stream().mapToLong(Member.State::term).max().orElse(-1);
    }

    /** Fails unless every member has applied exactly these commands in this order, in the same term as before. */
    void verify(long commands, long hash, long term, int stallS) throws RunFailed {
        long deadlineNs = System.nanoTime() + stallS * 1_000_000_000L;
        List<Member.State> states = states();
        // Followers learn last what is committed.
        while (states.stream().anyMatch(state -> state.commands() < commands) && System.nanoTime() < deadlineNs) {
            Thread.onSpinWait();
            states = states();
        }
        for (Member.State state : states) {
            if (state.commands() != commands || state.hash() != hash) {
                throw new RunFailed("the result differs: " + commands + " commands with hash " + hash + " were answered, and the members have "
                        + states + "; the figures are void.");
            }
        }
        if (term() != term) {
            throw new RunFailed("the leader changed during the run; the machine is too busy to measure on.");
        }
    }

    private List<Member.State> states() throws RunFailed {
        List<Member.State> states = new ArrayList<>();
        for (Member member : members) {
            states.add(member.state());
        }
        return states;
    }

    String lastWords() {
        return members.stream().map(member -> "member " + member.id + ": " + member.lastWords()).collect(Collectors.joining("\n"));
    }

    @Override
    public synchronized void close() {
        members.forEach(Member::stop);
        members.clear();
        remove(memory);
        remove(disk);
    }

    private static void remove(Path folder) {
        if (!Files.exists(folder)) {
            return;
        }
        try (Stream<Path> paths = Files.walk(folder)) {
            for (Path path : paths.sorted(Comparator.reverseOrder()).toList()) {
                Files.deleteIfExists(path);
            }
        } catch (IOException left) {
            System.err.println("aeron peer: " + folder + " could not be removed (" + left + "); remove it.");
        }
    }
}
