package walras.peer;

import exchange.core2.core.ExchangeCore;
import java.io.IOException;
import java.io.InputStream;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;

/**
 * Runs exchange-core beside Walras: reads a workload, drives the peer's book or its whole exchange with it, checks the result of every
 * round and prints the figures. Start reading at {@link BookModes} and {@link PipelineModes}.
 */
public final class Main {
    private Main() {}

    public static void main(String[] args) {
        if (List.of(args).contains("--help") || List.of(args).contains("-h")) {
            System.out.print(Options.USAGE);
            return;
        }
        int status;
        try {
            run(args);
            status = 0;
        } catch (BadInput refused) {
            status = failed(refused.getMessage(), 2);
        } catch (RunFailed failed) {
            status = failed(failed.getMessage(), 1);
        } catch (IOException failed) {
            status = failed("reading or writing failed (" + failed + "); check the path and the space on its disk.", 2);
        } catch (InterruptedException | ExecutionException failed) {
            status = failed("the peer did not answer (" + failed + "); read what it printed above.", 1);
        } catch (OutOfMemoryError tooSmall) {
            status = failed("the heap is too small for this workload; run a part of it with --commands N, or set EC_PEER_JAVA_OPTS=-Xmx8g.", 2);
        } catch (RuntimeException | Error failed) {
            failed.printStackTrace();
            status = failed("the peer or this program failed as printed above; the figures of this run are void.", 1);
        }
        // The peer's threads are no daemons and a stalled one would hold the process.
        System.exit(status);
    }

    private static int failed(String message, int status) {
        System.err.println("exchange-core peer: " + message);
        return status;
    }

    private static void run(String[] args) throws BadInput, RunFailed, IOException, InterruptedException, ExecutionException {
        Options options = Options.parse(args);
        Workload workload = Workload.read(options.file, options.commandCountMax());
        String checkedAgainst = "nothing";
        Outcome expected = null;
        Path expectFile = options.expect() != null ? options.expect() : Path.of(options.file + ".expect");
        if (options.expect() != null && !Files.isRegularFile(expectFile)) {
            throw new BadInput("--expect " + expectFile + " is not a file; name the .expect file of the workload, or leave the option out.");
        }
        if (workload.whole && Files.isRegularFile(expectFile)) {
            expected = Outcome.readExpected(expectFile);
            checkedAgainst = "expect-file";
        } else if (options.pipeline()) {
            expected = BookModes.replay(workload);
            checkedAgainst = "own-book";
        }
        String version = peerVersion();
        System.out.printf(
                "exchange-core %s %s: %,d commands of %s, checked against %s%n",
                version, options.mode.text, workload.commandCount(), workload.path, checkedAgainst);

        Json json = new Json()
                .put("peer", "exchange-core")
                .put("version", version)
                .put("mode", options.mode.text)
                .put("commands", workload.commandCount())
                .put("options", options.json());
        String check = "failed: see the error output";
        try {
            Report report = switch (options.mode) {
                case BOOK_DIRECT, BOOK_NAIVE -> BookModes.throughput(options, workload, expected);
                case BOOK_LATENCY -> BookModes.latency(options, workload, expected);
                case PIPELINE, PIPELINE_JOURNAL -> PipelineModes.throughput(options, workload, expected);
                case PIPELINE_LATENCY -> PipelineModes.latency(options, workload, expected);
            };
            report.writeTo(json);
            // A round whose result differs does not come here, so what is left is equal or had nothing to be compared with.
            check = expected == null ? "not-checked" : "equal";
        } catch (RunFailed failed) {
            check = "failed: " + failed.getMessage();
            throw failed;
        } finally {
            System.out.println(json.put("check", check).put("checked_against", checkedAgainst).put("jvm", jvm()));
        }
    }

    private static String peerVersion() throws IOException {
        try (InputStream stream = ExchangeCore.class.getResourceAsStream("/META-INF/maven/exchange.core2/exchange-core/pom.properties")) {
            Properties properties = new Properties();
            if (stream != null) {
                properties.load(stream);
            }
            return properties.getProperty("version", "unknown");
        }
    }

    private static String jvm() {
        String collectors = ManagementFactory.getGarbageCollectorMXBeans().stream()
                .map(GarbageCollectorMXBean::getName)
                .collect(Collectors.joining("+"));
        return System.getProperty("java.vm.name") + " " + System.getProperty("java.runtime.version") + ", " + collectors + ", heap "
                + (Runtime.getRuntime().maxMemory() >> 20) + " MiB, " + Runtime.getRuntime().availableProcessors() + " cores";
    }
}
