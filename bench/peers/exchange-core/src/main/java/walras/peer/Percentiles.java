package walras.peer;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.function.ToDoubleFunction;
import org.HdrHistogram.Histogram;

/** The shape of a latency distribution, in the unit that its report names. */
record Percentiles(double mean, double p50, double p90, double p99, double p999, double p9999, double max) {

    /** Exact, from every sample, each less {@code offset} and at least 0. */
    static Percentiles ofSamples(int[] samples, int offset) {
        int[] sorted = samples.clone();
        Arrays.sort(sorted);
        double sum = 0;
        for (int sample : sorted) {
            sum += Math.max(0, sample - offset);
        }
        return new Percentiles(
                sum / sorted.length,
                rank(sorted, 0.5, offset),
                rank(sorted, 0.9, offset),
                rank(sorted, 0.99, offset),
                rank(sorted, 0.999, offset),
                rank(sorted, 0.9999, offset),
                rank(sorted, 1, offset));
    }

    /** From a histogram of nanoseconds, in microseconds. */
    static Percentiles ofHistogramUs(Histogram histogram) {
        return new Percentiles(
                histogram.getMean() / 1e3,
                histogram.getValueAtPercentile(50) / 1e3,
                histogram.getValueAtPercentile(90) / 1e3,
                histogram.getValueAtPercentile(99) / 1e3,
                histogram.getValueAtPercentile(99.9) / 1e3,
                histogram.getValueAtPercentile(99.99) / 1e3,
                histogram.getMaxValue() / 1e3);
    }

    /** Each percentile's median over rounds. */
    static Percentiles medianOf(List<Percentiles> rounds) {
        return each(rounds, Report::median);
    }

    /** Each percentile's lowest over rounds. */
    static Percentiles lowestOf(List<Percentiles> rounds) {
        return each(rounds, values -> Arrays.stream(values).min().orElse(0));
    }

    private static Percentiles each(List<Percentiles> rounds, ToDoubleFunction<double[]> reduce) {
        return new Percentiles(
                reduce.applyAsDouble(rounds.stream().mapToDouble(Percentiles::mean).toArray()),
                reduce.applyAsDouble(rounds.stream().mapToDouble(Percentiles::p50).toArray()),
                reduce.applyAsDouble(rounds.stream().mapToDouble(Percentiles::p90).toArray()),
                reduce.applyAsDouble(rounds.stream().mapToDouble(Percentiles::p99).toArray()),
                reduce.applyAsDouble(rounds.stream().mapToDouble(Percentiles::p999).toArray()),
                reduce.applyAsDouble(rounds.stream().mapToDouble(Percentiles::p9999).toArray()),
                reduce.applyAsDouble(rounds.stream().mapToDouble(Percentiles::max).toArray()));
    }

    private static double rank(int[] sorted, double fraction, int offset) {
        int index = Math.max(0, (int) Math.ceil(fraction * sorted.length) - 1);
        return Math.max(0, sorted[index] - offset);
    }

    Json json() {
        return new Json().put("mean", mean).put("p50", p50).put("p90", p90).put("p99", p99).put("p999", p999).put("p9999", p9999).put("max", max);
    }

    @Override
    public String toString() {
        return String.format(
                Locale.ROOT, "mean %.1f p50 %.1f p90 %.1f p99 %.1f p99.9 %.1f p99.99 %.1f max %.1f", mean, p50, p90, p99, p999, p9999, max);
    }
}
