package walras.peer;

import exchange.core2.collections.objpool.ObjectsPool;
import exchange.core2.core.common.CoreSymbolSpecification;
import exchange.core2.core.common.SymbolType;
import exchange.core2.core.common.cmd.CommandResultCode;
import exchange.core2.core.common.cmd.OrderCommand;
import exchange.core2.core.common.config.LoggingConfiguration;
import exchange.core2.core.orderbook.IOrderBook;
import exchange.core2.core.orderbook.OrderBookDirectImpl;
import exchange.core2.core.orderbook.OrderBookEventsHelper;
import exchange.core2.core.orderbook.OrderBookNaiveImpl;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/** The order book alone, on one thread: no ring, no risk check, no journal. */
final class BookModes {
    private static final int TIMER_SAMPLES = 2_000_000;
    private static final int DEPTH_ALL = 1_000_000;

    private BookModes() {}

    /** Wall time per command over the stream behind what only fills the book, once per round. */
    static Report throughput(Options options, Workload workload, Outcome expected) throws RunFailed, BadInput {
        List<OrderCommand> commands = workload.orderCommands();
        if (options.untimedCount() >= commands.size()) {
            throw new BadInput("--untimed leaves nothing to be timed of " + commands.size() + " commands; take fewer.");
        }
        // Lists of one class, so that the compiler knows what the loop runs over.
        List<OrderCommand> fill = new ArrayList<>(commands.subList(0, options.untimedCount()));
        List<OrderCommand> timed = new ArrayList<>(commands.subList(options.untimedCount(), commands.size()));
        // Dropped events cannot be counted: what the rounds trade is then known from this run, and that they trade it from their books.
        Tally uncounted = options.readEvents() ? null : counted(options, commands);
        Report report = new Report("ns_per_op");
        for (int round = -options.warmupRounds(); round < options.rounds(); round++) {
            System.gc();
            IOrderBook book = newBook(options.naive());
            Tally tally = uncounted == null ? new Tally() : uncounted;
            requireNoneRefused(uncounted == null ? drive(book, fill, tally) : driveDroppingEvents(book, fill));
            long startNs = System.nanoTime();
            int refused = uncounted == null ? drive(book, timed, tally) : driveDroppingEvents(book, timed);
            double nsPerOp = (double) (System.nanoTime() - startNs) / timed.size();
            requireNoneRefused(refused);
            Outcome outcome = outcomeOf(book, tally);
            requireEqual(expected, outcome);
            String line = String.format(Locale.ROOT, "%.2f ns/op (%.3f M/s)  %s", nsPerOp, 1e3 / nsPerOp, outcome);
            report.round(round, nsPerOp, line);
        }
        report.bestIsLowest();
        return report;
    }

    /** Every command timed alone. */
    static Report latency(Options options, Workload workload, Outcome expected) throws RunFailed {
        List<OrderCommand> commands = workload.orderCommands();
        int[] lowestNs = new int[commands.size()];
        Arrays.fill(lowestNs, Integer.MAX_VALUE);
        int[] roundNs = new int[commands.size()];
        int timerNs = timerOverheadNs();
        System.out.printf("timer alone: %d ns (median of %,d pairs of System.nanoTime)%n", timerNs, TIMER_SAMPLES);

        Report report = new Report("ns");
        for (int round = -options.warmupRounds(); round < options.rounds(); round++) {
            System.gc();
            IOrderBook book = newBook(options.naive());
            Tally tally = new Tally();
            requireNoneRefused(driveTimed(book, commands, tally, roundNs));
            Outcome outcome = outcomeOf(book, tally);
            requireEqual(expected, outcome);
            if (round >= 0) {
                for (int index = 0; index < roundNs.length; index++) {
                    lowestNs[index] = Math.min(lowestNs[index], roundNs[index]);
                }
            }
            Percentiles ofRound = Percentiles.ofSamples(roundNs, 0);
            report.round(round, ofRound, ofRound + "  " + outcome);
        }
        report.put("timer_ns", timerNs);
        report.put("lowest_of_rounds", byOperation(workload, lowestNs, 0, "lowest of rounds"));
        report.put("lowest_of_rounds_less_timer", byOperation(workload, lowestNs, timerNs, "lowest, less timer"));
        return report;
    }

    private static Tally counted(Options options, List<OrderCommand> commands) throws RunFailed {
        Tally tally = new Tally();
        requireNoneRefused(drive(newBook(options.naive()), commands, tally));
        return tally;
    }

    /** What a stream leads to, taken from the peer's fast book. */
    static Outcome replay(Workload workload) throws RunFailed {
        IOrderBook book = newBook(false);
        Tally tally = new Tally();
        requireNoneRefused(drive(book, workload.orderCommands(), tally));
        return outcomeOf(book, tally);
    }

    static void requireEqual(Outcome expected, Outcome outcome) throws RunFailed {
        if (expected != null && !expected.equals(outcome)) {
            throw new RunFailed("the result differs: expected " + expected + ", got " + outcome
                    + "; check that the .expect file belongs to this workload before trusting any figure.");
        }
    }

    static void requireNoneRefused(long refused) throws RunFailed {
        if (refused > 0) {
            throw new RunFailed(refused + " commands were refused; the stream must be one that refers only to live orders, from its first record on.");
        }
    }

    private static int drive(IOrderBook book, List<OrderCommand> commands, Tally tally) {
        int refused = 0;
        OrderCommand work = new OrderCommand();
        for (OrderCommand command : commands) {
            command.writeTo(work);
            work.resultCode = CommandResultCode.VALID_FOR_MATCHING_ENGINE;
            work.matcherEvent = null;
            if (IOrderBook.processCommand(book, work) != CommandResultCode.SUCCESS) {
                refused++;
            }
            tally.add(work.matcherEvent);
        }
        return refused;
    }

    /** The same work as in the loop of the peer's own benchmark, which leaves the events unread. */
    private static int driveDroppingEvents(IOrderBook book, List<OrderCommand> commands) {
        int refused = 0;
        OrderCommand work = new OrderCommand();
        for (OrderCommand command : commands) {
            command.writeTo(work);
            work.resultCode = CommandResultCode.VALID_FOR_MATCHING_ENGINE;
            if (IOrderBook.processCommand(book, work) != CommandResultCode.SUCCESS) {
                refused++;
            }
        }
        return refused;
    }

    private static int driveTimed(IOrderBook book, List<OrderCommand> commands, Tally tally, int[] elapsedNs) {
        int refused = 0;
        int index = 0;
        OrderCommand work = new OrderCommand();
        for (OrderCommand command : commands) {
            command.writeTo(work);
            work.resultCode = CommandResultCode.VALID_FOR_MATCHING_ENGINE;
            work.matcherEvent = null;
            long startNs = System.nanoTime();
            CommandResultCode result = IOrderBook.processCommand(book, work);
            elapsedNs[index++] = (int) Math.min(System.nanoTime() - startNs, Integer.MAX_VALUE);
            if (result != CommandResultCode.SUCCESS) {
                refused++;
            }
            tally.add(work.matcherEvent);
        }
        return refused;
    }

    private static Outcome outcomeOf(IOrderBook book, Tally tally) {
        book.validateInternalState();
        return Outcome.of(tally.trades, tally.volume, book.getL2MarketDataSnapshot(DEPTH_ALL));
    }

    private static IOrderBook newBook(boolean naive) {
        // A future: as in the author's own order-book benchmark, so that the book checks no reserved price when it moves a bid.
        CoreSymbolSpecification symbol = PipelineModes.symbol(SymbolType.FUTURES_CONTRACT, 0, 0);
        ObjectsPool pool = ObjectsPool.createDefaultTestPool();
        OrderBookEventsHelper events = OrderBookEventsHelper.NON_POOLED_EVENTS_HELPER;
        return naive
                ? new OrderBookNaiveImpl(symbol, pool, events, LoggingConfiguration.DEFAULT)
                : new OrderBookDirectImpl(symbol, pool, events, LoggingConfiguration.DEFAULT);
    }

    private static int timerOverheadNs() {
        int[] samplesNs = new int[TIMER_SAMPLES];
        // The first pass is for the compiler.
        for (int pass = 0; pass < 2; pass++) {
            for (int index = 0; index < samplesNs.length; index++) {
                long startNs = System.nanoTime();
                samplesNs[index] = (int) Math.min(System.nanoTime() - startNs, Integer.MAX_VALUE);
            }
        }
        Arrays.sort(samplesNs);
        return samplesNs[samplesNs.length / 2];
    }

    private static Json byOperation(Workload workload, int[] elapsedNs, int timerNs, String title) {
        Json json = new Json();
        Percentiles all = Percentiles.ofSamples(elapsedNs, timerNs);
        System.out.printf("%-20s all     %s%n", title, all);
        json.put("all", all);
        for (int op = 0; op < Workload.OP_NAMES.length; op++) {
            List<Integer> ofOp = new ArrayList<>();
            for (int index = 0; index < elapsedNs.length; index++) {
                if (workload.ops[index] == op) {
                    ofOp.add(elapsedNs[index]);
                }
            }
            if (!ofOp.isEmpty()) {
                Percentiles percentiles = Percentiles.ofSamples(ofOp.stream().mapToInt(Integer::intValue).toArray(), timerNs);
                System.out.printf("%-20s %-7s %s%n", title, Workload.OP_NAMES[op], percentiles);
                json.put(Workload.OP_NAMES[op], percentiles);
            }
        }
        return json;
    }
}
