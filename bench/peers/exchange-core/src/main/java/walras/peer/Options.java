package walras.peer;

import exchange.core2.core.common.CoreWaitStrategy;
import exchange.core2.core.common.SymbolType;
import exchange.core2.core.utils.AffinityThreadFactory.ThreadAffinityMode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** The command line, parsed and checked. */
final class Options {
    enum Mode {
        BOOK_DIRECT("book-direct"),
        BOOK_NAIVE("book-naive"),
        BOOK_LATENCY("book-latency"),
        PIPELINE("pipeline"),
        PIPELINE_JOURNAL("pipeline-journal"),
        PIPELINE_LATENCY("pipeline-latency");

        final String text;

        Mode(String text) {
            this.text = text;
        }
    }

    static final String USAGE = """
            usage: run.sh MODE FILE [options]

            MODE
              book-direct FILE             wall time per command, OrderBookDirectImpl alone
              book-naive FILE              the same, OrderBookNaiveImpl
              book-latency FILE            every command timed alone, OrderBookDirectImpl
              pipeline FILE                commands per second through the whole exchange
              pipeline-journal FILE        the same with its journal on disk; needs --journal-dir
              pipeline-latency FILE RATE   open loop at RATE commands per second

            FILE is an unpacked workload of 32-byte records. The result of every round is compared with FILE.expect when that
            is there and the whole FILE is run, otherwise with what the peer's own bare book makes of the same commands.

            options (defaults in brackets)
              --rounds N        measured rounds [8]
              --warmup N        rounds before them, not reported [5; 2 in pipeline modes]
              --commands N      only the first N commands [all; 1000000 in pipeline-journal]
              --untimed N       book-direct and book-naive: the first N commands only fill the book and are not timed [0]
              --expect FILE     another file of expected results [FILE.expect]
              --events E        read or drop: whether book-direct and book-naive read every command's events [read]
              --wait W          yielding, blocking or busy-spin [yielding]
              --risk R          margin (a future) or exchange (a currency pair) [margin]
              --maker-fee N     per lot, in units of the quote currency [0]
              --taker-fee N     per lot, at least the maker fee [0]
              --ring N          slots of the ring, a power of two [32768; 2048 in pipeline-latency]
              --group N         most commands in one group [1536; 256 in pipeline-latency]
              --affinity A      none, logical or physical: how the peer pins its threads [none]
              --pace P          how pipeline-latency's sender waits for its time: yield or spin [yield]
              --journal-dir D   an existing folder on the disk to be measured; a subfolder is made in it and removed again
              --stall-s N       give up after N seconds without a result [60]

            The last line printed is one JSON object. Exit status: 0 equal, 1 the result differs or the peer stalled, 2 bad input.
            """;

    private static final Map<String, CoreWaitStrategy> WAITS = Map.of(
            "yielding", CoreWaitStrategy.YIELDING, "blocking", CoreWaitStrategy.BLOCKING, "busy-spin", CoreWaitStrategy.BUSY_SPIN);
    private static final Map<String, SymbolType> RISKS =
            Map.of("margin", SymbolType.FUTURES_CONTRACT, "exchange", SymbolType.CURRENCY_EXCHANGE_PAIR);
    private static final Map<String, ThreadAffinityMode> AFFINITIES = Map.of(
            "none", ThreadAffinityMode.THREAD_AFFINITY_DISABLE,
            "logical", ThreadAffinityMode.THREAD_AFFINITY_ENABLE_PER_LOGICAL_CORE,
            "physical", ThreadAffinityMode.THREAD_AFFINITY_ENABLE_PER_PHYSICAL_CORE);
    private static final Map<String, Boolean> EVENTS = Map.of("read", true, "drop", false);
    private static final Map<String, Boolean> PACES = Map.of("yield", false, "spin", true);

    final Mode mode;
    final Path file;
    /** Commands per second; 0 in the modes that take no rate. */
    final long ratePerS;

    private int rounds = 8;
    private int warmupRounds;
    private long commandCountMax = Long.MAX_VALUE;
    private int untimedCount;
    private Path expect;
    private String wait = "yielding";
    private String risk = "margin";
    private long makerFee;
    private long takerFee;
    private int ringSlots;
    private int groupMax;
    private String affinity = "none";
    private String pace = "yield";
    private Path journalDir;
    private int stallS = 60;
    private String events = "read";

    private Options(Mode mode, Path file, long ratePerS) {
        this.mode = mode;
        this.file = file;
        this.ratePerS = ratePerS;
        boolean latency = mode == Mode.PIPELINE_LATENCY;
        warmupRounds = pipeline() ? 2 : 5;
        // The author's figures for one symbol: PerfThroughput and PerfLatency in its tests.
        ringSlots = latency ? 2048 : 32768;
        groupMax = latency ? 256 : 1536;
        if (mode == Mode.PIPELINE_JOURNAL) {
            commandCountMax = 1_000_000;
        }
    }

    static Options parse(String[] args) throws BadInput {
        List<String> positional = new ArrayList<>();
        List<String[]> named = new ArrayList<>();
        for (int index = 0; index < args.length; index++) {
            if (!args[index].startsWith("--")) {
                positional.add(args[index]);
            } else if (index + 1 < args.length) {
                named.add(new String[] {args[index], args[++index]});
            } else {
                throw new BadInput(args[index] + " needs a value after it; run.sh --help lists the options.");
            }
        }
        if (positional.isEmpty()) {
            throw new BadInput("a mode and a file are needed; run.sh --help lists the modes.");
        }
        Mode mode = modeNamed(positional.get(0));
        int wanted = mode == Mode.PIPELINE_LATENCY ? 3 : 2;
        if (positional.size() != wanted) {
            throw new BadInput(mode.text + " takes " + (wanted == 3 ? "a file and a rate" : "one file") + ", and " + (positional.size() - 1)
                    + " arguments were given; write run.sh " + mode.text + " FILE" + (wanted == 3 ? " RATE" : "") + " [options].");
        }
        long ratePerS = wanted == 3 ? number("RATE", positional.get(2), 1, 100_000_000) : 0;
        Options options = new Options(mode, Path.of(positional.get(1)), ratePerS);
        for (String[] option : named) {
            options.set(option[0], option[1]);
        }
        options.checkTogether();
        return options;
    }

    private static Mode modeNamed(String text) throws BadInput {
        for (Mode mode : Mode.values()) {
            if (mode.text.equals(text)) {
                return mode;
            }
        }
        throw new BadInput("there is no mode '" + text + "'; run.sh --help lists the modes.");
    }

    private void set(String name, String value) throws BadInput {
        switch (name) {
            case "--rounds" -> rounds = (int) number(name, value, 1, 1000);
            case "--warmup" -> warmupRounds = (int) number(name, value, 0, 1000);
            case "--commands" -> commandCountMax = number(name, value, 1, Integer.MAX_VALUE);
            case "--untimed" -> untimedCount = (int) number(name, value, 0, Integer.MAX_VALUE);
            case "--expect" -> expect = Path.of(value);
            case "--events" -> events = oneOf(name, value, EVENTS);
            case "--wait" -> wait = oneOf(name, value, WAITS);
            case "--risk" -> risk = oneOf(name, value, RISKS);
            case "--maker-fee" -> makerFee = number(name, value, 0, 1_000_000);
            case "--taker-fee" -> takerFee = number(name, value, 0, 1_000_000);
            case "--ring" -> ringSlots = (int) number(name, value, 64, 1 << 24);
            case "--group" -> groupMax = (int) number(name, value, 1, 1 << 24);
            case "--affinity" -> affinity = oneOf(name, value, AFFINITIES);
            case "--pace" -> pace = oneOf(name, value, PACES);
            case "--journal-dir" -> journalDir = Path.of(value);
            case "--stall-s" -> stallS = (int) number(name, value, 1, 86_400);
            default -> throw new BadInput("there is no option '" + name + "'; run.sh --help lists the options.");
        }
    }

    private void checkTogether() throws BadInput {
        if (Integer.bitCount(ringSlots) != 1) {
            throw new BadInput("--ring must be a power of two, and " + ringSlots + " is not; take " + Integer.highestOneBit(ringSlots) + ".");
        }
        if (groupMax > ringSlots / 4) {
            throw new BadInput("--group may be at most a quarter of --ring, which the peer demands; take " + ringSlots / 4 + " or a larger ring.");
        }
        if (takerFee < makerFee) {
            throw new BadInput("--taker-fee must be at least --maker-fee, because the peer reserves only the taker fee; raise the one or lower the other.");
        }
        if (untimedCount > 0 && mode != Mode.BOOK_DIRECT && mode != Mode.BOOK_NAIVE) {
            throw new BadInput("--untimed is of book-direct and book-naive only; leave it out.");
        }
        if (mode == Mode.PIPELINE_JOURNAL && journalDir == null) {
            throw new BadInput("pipeline-journal writes to disk; name an existing folder on the disk to be measured with --journal-dir DIR.");
        }
        if (mode == Mode.PIPELINE_JOURNAL && !Files.isDirectory(journalDir)) {
            throw new BadInput("--journal-dir " + journalDir + " is not a folder; make it first (mkdir -p), on the disk to be measured.");
        }
    }

    private static long number(String name, String value, long min, long max) throws BadInput {
        try {
            long number = Long.parseLong(value);
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

    boolean pipeline() {
        return mode == Mode.PIPELINE || mode == Mode.PIPELINE_JOURNAL || mode == Mode.PIPELINE_LATENCY;
    }

    boolean naive() {
        return mode == Mode.BOOK_NAIVE;
    }

    boolean readEvents() {
        return EVENTS.get(events);
    }

    int rounds() {
        return rounds;
    }

    int warmupRounds() {
        return warmupRounds;
    }

    long commandCountMax() {
        return commandCountMax;
    }

    /** How many commands fill the book before the clock starts. */
    int untimedCount() {
        return untimedCount;
    }

    /** The file named by --expect, or null. */
    Path expect() {
        return expect;
    }

    CoreWaitStrategy waitStrategy() {
        return WAITS.get(wait);
    }

    SymbolType symbolType() {
        return RISKS.get(risk);
    }

    long makerFee() {
        return makerFee;
    }

    long takerFee() {
        return takerFee;
    }

    int ringSlots() {
        return ringSlots;
    }

    int groupMax() {
        return groupMax;
    }

    ThreadAffinityMode affinity() {
        return AFFINITIES.get(affinity);
    }

    boolean spin() {
        return PACES.get(pace);
    }

    /** Null in the modes without a journal. */
    Path journalDir() {
        return mode == Mode.PIPELINE_JOURNAL ? journalDir : null;
    }

    int stallS() {
        return stallS;
    }

    /** What a reader of a figure has to know about how it was made. */
    Json json() {
        Json json = new Json().put("warmup", warmupRounds);
        if (mode == Mode.BOOK_DIRECT || mode == Mode.BOOK_NAIVE) {
            json.put("events", events).put("untimed", untimedCount);
        }
        if (pipeline()) {
            json.put("wait", wait).put("risk", risk).put("maker_fee", makerFee).put("taker_fee", takerFee);
            json.put("ring", ringSlots).put("group", groupMax).put("affinity", affinity);
        }
        if (mode == Mode.PIPELINE_LATENCY) {
            json.put("rate", ratePerS).put("pace", pace);
        }
        return json;
    }
}
