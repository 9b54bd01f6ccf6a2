package walras.peer;

import exchange.core2.core.common.CoreSymbolSpecification;
import exchange.core2.core.common.SymbolType;
import exchange.core2.core.common.api.ApiCommand;
import java.io.IOException;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.ExecutionException;
import org.HdrHistogram.Histogram;

/** The whole exchange: one ring, grouping, one risk engine, one matching engine, risk again, results. */
final class PipelineModes {
    static final int SYMBOL_ID = 1;
    static final int BASE_CURRENCY = 1;
    static final int QUOTE_CURRENCY = 2;

    private static final long LATENCY_NS_MAX = 3_600_000_000_000L;

    private PipelineModes() {}

    static CoreSymbolSpecification symbol(SymbolType type, long makerFee, long takerFee) {
        return CoreSymbolSpecification.builder()
                .symbolId(SYMBOL_ID)
                .type(type)
                .baseCurrency(BASE_CURRENCY)
                .quoteCurrency(QUOTE_CURRENCY)
                .baseScaleK(1)
                .quoteScaleK(1)
                .makerFee(makerFee)
                .takerFee(takerFee)
                // What a future holds back per lot; the users' funds are far above it.
                .marginBuy(1000)
                .marginSell(1000)
                .build();
    }

    /** Commands per second, in millions, from the first submitted to the result of the last. */
    static Report throughput(Options options, Workload workload, Outcome expected)
            throws RunFailed, IOException, InterruptedException, ExecutionException {
        List<ApiCommand> commands = workload.apiCommands(SYMBOL_ID);
        Report report = new Report("mops");
        try (Exchange exchange = new Exchange(options)) {
            for (int round = -options.warmupRounds(); round < options.rounds(); round++) {
                exchange.open(workload.distinctUsers());
                System.gc();
                exchange.results.clear(null);
                long startNs = System.nanoTime();
                exchange.api().submitCommandsSync(commands);
                double mops = commands.size() * 1e3 / (System.nanoTime() - startNs);
                Outcome outcome = exchange.outcome(commands.size());
                BookModes.requireEqual(expected, outcome);
                exchange.reset();
                report.round(round, mops, String.format(Locale.ROOT, "%.3f M/s (%.1f ns/op)  %s", mops, 1e3 / mops, outcome));
            }
            if (options.journalDir() != null) {
                long bytes = exchange.journalBytes();
                double perCommand = (double) bytes / commands.size() / (options.rounds() + options.warmupRounds());
                System.out.printf(Locale.ROOT, "journal  %,d bytes, %.1f a command%n", bytes, perCommand);
                report.put("journal_bytes_per_command", perCommand);
            }
        }
        return report;
    }

    /** Microseconds from when a command was due to when its result was read, at a fixed rate whatever the exchange makes of it. */
    static Report latency(Options options, Workload workload, Outcome expected)
            throws RunFailed, IOException, InterruptedException, ExecutionException {
        List<ApiCommand> commands = workload.apiCommands(SYMBOL_ID);
        Histogram histogram = new Histogram(LATENCY_NS_MAX, 3);
        Report report = new Report("us");
        try (Exchange exchange = new Exchange(options)) {
            for (int round = -options.warmupRounds(); round < options.rounds(); round++) {
                exchange.open(workload.distinctUsers());
                System.gc();
                histogram.reset();
                exchange.results.clear(histogram);
                double achievedMops = sendAtRate(exchange, commands, options);
                exchange.results.stopTiming();
                Percentiles latency = Percentiles.ofHistogramUs(histogram);
                Outcome outcome = exchange.outcome(commands.size());
                BookModes.requireEqual(expected, outcome);
                exchange.reset();
                String line = String.format(Locale.ROOT, "us: %s  (%.3f M/s achieved)  %s", latency, achievedMops, outcome);
                report.round(round, latency, line);
            }
        }
        return report;
    }

    private static double sendAtRate(Exchange exchange, List<ApiCommand> commands, Options options) {
        double intervalNs = 1e9 / options.ratePerS;
        boolean spin = options.spin();
        int last = commands.size() - 1;
        long startNs = System.nanoTime();
        for (int index = 0; index <= last; index++) {
            ApiCommand command = commands.get(index);
            long dueNs = startNs + (long) (index * intervalNs);
            while (System.nanoTime() < dueNs) {
                if (spin) {
                    Thread.onSpinWait();
                } else {
                    Thread.yield();
                }
            }
            // The peer carries this stamp through to its results, where the latency is taken from it.
            command.timestamp = dueNs;
            if (index < last) {
                exchange.api().submitCommand(command);
            } else {
                exchange.api().submitCommandAsync(command).join();
            }
        }
        return commands.size() * 1e3 / (System.nanoTime() - startNs);
    }
}
