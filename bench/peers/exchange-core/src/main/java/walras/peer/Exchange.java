package walras.peer;

import exchange.core2.core.ExchangeApi;
import exchange.core2.core.ExchangeCore;
import exchange.core2.core.common.L2MarketData;
import exchange.core2.core.common.api.ApiAddUser;
import exchange.core2.core.common.api.ApiAdjustUserBalance;
import exchange.core2.core.common.api.ApiCommand;
import exchange.core2.core.common.api.ApiReset;
import exchange.core2.core.common.api.binary.BatchAddSymbolsCommand;
import exchange.core2.core.common.api.reports.TotalCurrencyBalanceReportQuery;
import exchange.core2.core.common.cmd.CommandResultCode;
import exchange.core2.core.common.cmd.OrderCommand;
import exchange.core2.core.common.config.ExchangeConfiguration;
import exchange.core2.core.common.config.InitialStateConfiguration;
import exchange.core2.core.common.config.LoggingConfiguration;
import exchange.core2.core.common.config.OrdersProcessingConfiguration;
import exchange.core2.core.common.config.OrdersProcessingConfiguration.MarginTradingMode;
import exchange.core2.core.common.config.OrdersProcessingConfiguration.RiskProcessingMode;
import exchange.core2.core.common.config.PerformanceConfiguration;
import exchange.core2.core.common.config.ReportsQueriesConfiguration;
import exchange.core2.core.common.config.SerializationConfiguration;
import exchange.core2.core.processors.journaling.DiskSerializationProcessor;
import exchange.core2.core.processors.journaling.DiskSerializationProcessorConfiguration;
import exchange.core2.core.utils.AffinityThreadFactory;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.HdrHistogram.Histogram;

/** A running exchange with one symbol, opened with funded users before a round and reset after it. */
final class Exchange implements AutoCloseable {
    /** More than a stream can use, and little enough that the sum over thousands of users stays within 64 bits. */
    private static final long FUNDS = 1_000_000_000_000_000L;

    private static final int DEPTH_ALL = 1_000_000;

    final Results results = new Results();

    private final Options options;
    private final ExchangeCore core;
    private final Path journal;
    private int transferId;

    Exchange(Options options) throws IOException {
        this.options = options;
        journal = options.journalDir() == null ? null : Files.createTempDirectory(options.journalDir(), "exchange-core-");
        if (journal != null) {
            removeJournalAtExit();
        }
        core = ExchangeCore.builder().resultsConsumer(results::accept).exchangeConfiguration(configuration()).build();
        core.startup();
        startWatchdog();
    }

    private ExchangeConfiguration configuration() {
        // An id of its own, because the peer refuses to start over a journal file that is there already.
        String exchangeId = "walras-" + System.currentTimeMillis();
        return ExchangeConfiguration.defaultBuilder()
                .ordersProcessingCfg(OrdersProcessingConfiguration.builder()
                        .riskProcessingMode(RiskProcessingMode.FULL_PER_CURRENCY)
                        .marginTradingMode(MarginTradingMode.MARGIN_TRADING_ENABLED)
                        .build())
                // The author's throughput and latency settings differ, for one symbol, only in what the options give.
                .performanceCfg((options.mode == Options.Mode.PIPELINE_LATENCY
                                ? PerformanceConfiguration.latencyPerformanceBuilder()
                                : PerformanceConfiguration.throughputPerformanceBuilder())
                        .ringBufferSize(options.ringSlots())
                        .matchingEnginesNum(1)
                        .riskEnginesNum(1)
                        .msgsInGroupLimit(options.groupMax())
                        .threadFactory(new AffinityThreadFactory(options.affinity()))
                        .waitStrategy(options.waitStrategy())
                        .build())
                .initStateCfg(journal == null
                        ? InitialStateConfiguration.cleanStart(exchangeId)
                        : InitialStateConfiguration.cleanStartJournaling(exchangeId))
                .reportsQueriesCfg(ReportsQueriesConfiguration.createStandardConfig())
                .loggingCfg(LoggingConfiguration.DEFAULT)
                .serializationCfg(journal == null ? SerializationConfiguration.DEFAULT : journaling())
                .build();
    }

    /** The peer's own journaling settings, in our folder. */
    private SerializationConfiguration journaling() {
        DiskSerializationProcessorConfiguration defaults = DiskSerializationProcessorConfiguration.createDefaultConfig();
        DiskSerializationProcessorConfiguration here = DiskSerializationProcessorConfiguration.builder()
                .storageFolder(journal.toString())
                .snapshotLz4CompressorFactory(defaults.getSnapshotLz4CompressorFactory())
                .journalFileMaxSize(defaults.getJournalFileMaxSize())
                .journalBufferSize(defaults.getJournalBufferSize())
                .journalBatchCompressThreshold(defaults.getJournalBatchCompressThreshold())
                .journalLz4CompressorFactory(defaults.getJournalLz4CompressorFactory())
                .build();
        return SerializationConfiguration.builder()
                .enableJournaling(true)
                .serializationProcessorFactory(configuration -> new DiskSerializationProcessor(configuration, here))
                .build();
    }

    ExchangeApi api() {
        return core.getApi();
    }

    /** Lists the symbol and gives every user funds in both currencies. */
    void open(int[] users) throws RunFailed, InterruptedException, ExecutionException {
        BatchAddSymbolsCommand symbols =
                new BatchAddSymbolsCommand(PipelineModes.symbol(options.symbolType(), options.makerFee(), options.takerFee()));
        requireSuccess("listing the symbol", api().submitBinaryDataAsync(symbols).get());
        List<ApiCommand> commands = new ArrayList<>();
        for (int user : users) {
            commands.add(ApiAddUser.builder().uid(user).build());
            for (int currency : new int[] {PipelineModes.BASE_CURRENCY, PipelineModes.QUOTE_CURRENCY}) {
                commands.add(ApiAdjustUserBalance.builder().uid(user).transactionId(currency).currency(currency).amount(FUNDS).build());
            }
        }
        results.clear(null);
        api().submitCommandsSync(commands);
        if (results.successes != commands.size()) {
            throw new RunFailed("of " + commands.size() + " commands that add and fund users " + results.successes + " succeeded, first refusal "
                    + results.firstRefusal + "; this is the peer's fault or this program's, not the workload's.");
        }
    }

    /** Waits for nothing: call it once the last command's result is there. */
    Outcome outcome(int commandCount) throws RunFailed, InterruptedException, ExecutionException {
        long successes = results.successes;
        long trades = results.tally.trades;
        long volume = results.tally.volume;
        if (successes != commandCount) {
            throw new RunFailed("of " + commandCount + " commands " + successes + " succeeded, first refusal " + results.firstRefusal
                    + "; the stream must be one that refers only to live orders, from its first record on.");
        }
        L2MarketData book = api().requestOrderBookAsync(PipelineModes.SYMBOL_ID, DEPTH_ALL).get();
        if (!api().processReport(new TotalCurrencyBalanceReportQuery(), ++transferId).get().isGlobalBalancesAllZero()) {
            throw new RunFailed("the peer's balances do not add up to what was paid in; its figures cannot be trusted with these options.");
        }
        return Outcome.of(trades, volume, book);
    }

    void reset() throws RunFailed, InterruptedException, ExecutionException {
        requireSuccess("the reset", api().submitCommandAsync(ApiReset.builder().build()).get());
    }

    long journalBytes() throws IOException {
        long bytes = 0;
        for (Path file : journalFiles()) {
            bytes += Files.size(file);
        }
        return bytes;
    }

    @Override
    public void close() {
        core.shutdown(10, TimeUnit.SECONDS);
    }

    /** However the process ends, short of a kill, it leaves no journal behind. */
    private void removeJournalAtExit() {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            try {
                for (Path file : journalFiles()) {
                    Files.delete(file);
                }
                Files.delete(journal);
            } catch (IOException failed) {
                System.err.println("exchange-core peer: " + journal + " could not be removed (" + failed + "); remove it by hand.");
            }
        }));
    }

    private List<Path> journalFiles() throws IOException {
        try (var files = Files.list(journal)) {
            return files.toList();
        }
    }

    private static void requireSuccess(String what, CommandResultCode code) throws RunFailed {
        if (code != CommandResultCode.SUCCESS) {
            throw new RunFailed(what + " was answered " + code + " by the peer; this is the peer's fault or this program's, not the workload's.");
        }
    }

    /** A stage of the peer that throws stops its ring for good, and the sender then waits for ever: end the process instead. */
    private void startWatchdog() {
        Thread watchdog = new Thread(
                () -> {
                    long before = -1;
                    while (true) {
                        try {
                            TimeUnit.SECONDS.sleep(options.stallS());
                        } catch (InterruptedException stop) {
                            return;
                        }
                        long now = results.received.get();
                        if (now == before) {
                            System.err.println("exchange-core peer: no result for " + options.stallS() + " seconds; read what the peer printed above,"
                                    + " or allow it longer with --stall-s N.");
                            System.exit(1);
                        }
                        before = now;
                    }
                },
                "watchdog");
        watchdog.setDaemon(true);
        watchdog.start();
    }

    /** Reads every result, on the peer's results thread; read it from another only once the last result has been waited for. */
    static final class Results {
        final AtomicLong received = new AtomicLong();
        Tally tally = new Tally();
        long successes;
        CommandResultCode firstRefusal;
        private Histogram histogram;

        void clear(Histogram latencies) {
            tally = new Tally();
            successes = 0;
            firstRefusal = null;
            histogram = latencies;
        }

        /** What comes after the stream, such as the request of the book left, carries no stamp to take a latency from. */
        void stopTiming() {
            histogram = null;
        }

        void accept(OrderCommand command, long sequence) {
            if (histogram != null) {
                histogram.recordValue(Math.max(0, System.nanoTime() - command.timestamp));
            }
            if (command.resultCode == CommandResultCode.SUCCESS) {
                successes++;
            } else if (firstRefusal == null) {
                firstRefusal = command.resultCode;
            }
            tally.add(command.matcherEvent);
            received.lazySet(received.getPlain() + 1);
        }
    }
}
