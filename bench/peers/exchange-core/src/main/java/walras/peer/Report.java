package walras.peer;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** The figures of the measured rounds, printed as they come and handed over as JSON at the end. */
final class Report {
    private final String unit;
    private final List<Double> figures = new ArrayList<>();
    private final List<Percentiles> latencies = new ArrayList<>();
    private final List<String> extraKeys = new ArrayList<>();
    private final List<Object> extraValues = new ArrayList<>();
    private boolean bestIsLowest;

    Report(String unit) {
        this.unit = unit;
    }

    /** A round below 0 is a warm-up: printed, not reported. */
    void round(int round, double figure, String line) {
        print(round, line);
        if (round >= 0) {
            figures.add(figure);
        }
    }

    void round(int round, Percentiles latency, String line) {
        print(round, line);
        if (round >= 0) {
            latencies.add(latency);
        }
    }

    void bestIsLowest() {
        bestIsLowest = true;
    }

    void put(String key, Object value) {
        extraKeys.add(key);
        extraValues.add(value);
    }

    void writeTo(Json json) {
        json.put("unit", unit);
        if (latencies.isEmpty()) {
            double[] values = figures.stream().mapToDouble(Double::doubleValue).toArray();
            double best = bestIsLowest ? Arrays.stream(values).min().orElse(0) : Arrays.stream(values).max().orElse(0);
            json.put("rounds", figures).put("median", median(values)).put("best", best);
        } else {
            json.put("rounds", latencies).put("median", Percentiles.medianOf(latencies)).put("best", Percentiles.lowestOf(latencies));
        }
        for (int index = 0; index < extraKeys.size(); index++) {
            json.put(extraKeys.get(index), extraValues.get(index));
        }
    }

    static double median(double[] values) {
        double[] sorted = values.clone();
        Arrays.sort(sorted);
        int middle = sorted.length / 2;
        return sorted.length % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
    }

    private void print(int round, String line) {
        String name = round < 0 ? "warm-up" : "round " + (round + 1);
        System.out.printf("%-8s %s%n", name, line);
    }
}
