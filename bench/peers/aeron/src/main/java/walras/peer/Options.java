package walras.peer;

import io.aeron.driver.ThreadingMode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.function.Supplier;
import org.agrona.concurrent.BackoffIdleStrategy;
import org.agrona.concurrent.IdleStrategy;
import org.agrona.concurrent.SleepingIdleStrategy;
import org.agrona.concurrent.YieldingIdleStrategy;

/** The command line, parsed and checked. */
final class Options {
    static final String USAGE = """
            usage: run.sh --dir DIR (--outstanding N | --offered RATE) [options]

              --dir DIR         an existing folder on the disk to be measured; a subfolder is made in it and removed again
              --outstanding N   closed loop: so many commands sent and not yet answered, at any time
              --offered RATE    open loop: so many commands a second, sent when due however slow the cluster is

            options (defaults in brackets)
              --sync LEVEL      0: the operating system writes the log when it likes; 1: data synced before it counts; 2: and metadata [2]
              --idle S          what a thread without work does: sleeping, yielding or backoff (Aeron's default) [yielding]
              --client-idle S   the same for the client's own thread [as --idle]
              --threading M     a media driver's threads: shared (one), shared-network (two) or dedicated (three) [shared]
              --mtu BYTES       longest datagram, a multiple of 32 from 1408 to 65504 [8192]
              --value-bytes N   bytes of a command, from 24 [64]
              --members N       members of the cluster: 1, 3 or 5 [3]
              --seconds N       seconds measured [10]
              --warmup N        seconds of the same load before them [10]
              --stall-s N       give up after N seconds without an answer [30]

            The last line printed is one JSON object. Exit status: 0 figures printed, 1 the result differs or the cluster stalled, 2 bad input.
            """;

    private static final Map<String, Supplier<IdleStrategy>> IDLES = Map.of(
            "sleeping", SleepingIdleStrategy::new,
            "yielding", () -> YieldingIdleStrategy.INSTANCE,
            "backoff", BackoffIdleStrategy::new);
    private static final Map<String, ThreadingMode> THREADINGS = Map.of(
            "shared", ThreadingMode.SHARED, "shared-network", ThreadingMode.SHARED_NETWORK, "dedicated", ThreadingMode.DEDICATED);

    Path dir;
    /** 0 in the open loop. */
    int outstanding;
    /** Commands a second; 0 in the closed loop. */
    long offered;
    int syncLevel = 2;
    String idle = "yielding";
    String clientIdle;
    String threading = "shared";
    int mtu = 8192;
    int valueBytes = 64;
    int members = 3;
    int seconds = 10;
    int warmup = 10;
    int stallS = 30;

    static Options parse(String[] args) throws BadInput {
        Options options = new Options();
        for (int index = 0; index < args.length; index += 2) {
            if (index + 1 == args.length) {
                throw new BadInput(args[index] + " needs a value after it; run.sh --help lists the options.");
            }
            options.set(args[index], args[index + 1]);
        }
        options.checkTogether();
        return options;
    }

    private void set(String name, String value) throws BadInput {
        switch (name) {
            case "--dir" -> dir = Path.of(value);
            case "--outstanding" -> outstanding = number(name, value, 1, 1 << 20);
            case "--offered" -> offered = number(name, value, 1, 100_000_000);
            case "--sync" -> syncLevel = number(name, value, 0, 2);
            case "--idle" -> idle = oneOf(name, value, IDLES);
            case "--client-idle" -> clientIdle = oneOf(name, value, IDLES);
            case "--threading" -> threading = oneOf(name, value, THREADINGS);
            case "--mtu" -> mtu = number(name, value, 1408, 65504);
            case "--value-bytes" -> valueBytes = number(name, value, Command.BYTES_MIN, 1024);
            case "--members" -> members = number(name, value, 1, 5);
            case "--seconds" -> seconds = number(name, value, 1, 3_600);
            case "--warmup" -> warmup = number(name, value, 0, 3_600);
            case "--stall-s" -> stallS = number(name, value, 1, 3_600);
            default -> throw new BadInput("there is no option '" + name + "'; run.sh --help lists the options.");
        }
    }

    private void checkTogether() throws BadInput {
        if ((outstanding == 0) == (offered == 0)) {
            throw new BadInput("one of --outstanding N and --offered RATE is needed; give the load that is to be measured.");
        }
        if (members % 2 == 0) {
            throw new BadInput("--members must be 1, 3 or 5, and " + members + " is not.");
        }
        if (mtu % 32 != 0) {
            throw new BadInput("--mtu must be a multiple of 32, and " + mtu + " is not; take " + mtu / 32 * 32 + ".");
        }
        if (dir == null) {
            throw new BadInput("Aeron records to disk; name an existing folder on the disk to be measured with --dir DIR.");
        }
        if (!Files.isDirectory(dir)) {
            throw new BadInput("--dir " + dir + " is not a folder; make it first (mkdir -p), on the disk to be measured.");
        }
        if (clientIdle == null) {
            clientIdle = idle;
        }
    }

    private static int number(String name, String value, int min, int max) throws BadInput {
        try {
            int number = Integer.parseInt(value);
            if (number >= min && number <= max) {
                return number;
            }
        } catch (NumberFormatException notANumber) {
            // Said below, in the same words as for a number out of range.
        }
        throw new BadInput(name + " must be a whole number from " + min + " to " + max + ", and '" + value + "' is not.");
    }

    private static String oneOf(String name, String value, Map<String, ?> known) throws BadInput {
        if (!known.containsKey(value)) {
            throw new BadInput(name + " must be one of " + known.keySet().stream().sorted().toList() + ", and '" + value + "' is not.");
        }
        return value;
    }

    Supplier<IdleStrategy> idleStrategy() {
        return IDLES.get(idle);
    }

    IdleStrategy clientIdleStrategy() {
        return IDLES.get(clientIdle).get();
    }

    ThreadingMode threadingMode() {
        return THREADINGS.get(threading);
    }

    /** Whether the log is on disk before a command counts as replicated. */
    boolean sync() {
        return syncLevel > 0;
    }
}
