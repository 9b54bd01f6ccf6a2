package walras.peer;

import io.aeron.Publication;
import io.aeron.cluster.client.AeronCluster;
import io.aeron.cluster.client.EgressListener;
import io.aeron.logbuffer.Header;
import java.util.concurrent.TimeUnit;
import org.HdrHistogram.Histogram;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.IdleStrategy;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * One client that sends commands and takes their answers, in one thread. Closed loop: a command is due when there is room. Open loop:
 * command i is due at start + i / rate, never later because the cluster is slow, and its latency runs from then.
 */
final class Load implements EgressListener {
    /** So that answers are taken in between when the client is behind. */
    private static final int BURST_MAX = 256;
    private static final int POLLS_MAX = 64;
    private static final long LATENCY_NS_MAX = TimeUnit.MINUTES.toNanos(10);

    private final Options options;
    private final Members members;
    private final UnsafeBuffer command;
    private final Histogram latencies = new Histogram(LATENCY_NS_MAX, 3);
    private AeronCluster client;
    private long beginNs;
    private long measureFromNs;
    private long measureToNs;
    private long sent;
    private long answered;
    private long answeredInTime;
    private long sentHash = Command.HASH_OF_NONE;
    private long answeredHash = Command.HASH_OF_NONE;
    private long lastAnswerNs;
    private String wrong;

    Load(Options options, Members members) {
        this.options = options;
        this.members = members;
        command = new UnsafeBuffer(new byte[options.valueBytes]);
        Command.fill(command, options.valueBytes);
    }

    /** The figures, once every answer has come. */
    void run(AeronCluster client) throws RunFailed {
        this.client = client;
        IdleStrategy idle = options.clientIdleStrategy();
        beginNs = System.nanoTime();
        measureFromNs = beginNs + TimeUnit.SECONDS.toNanos(options.warmup);
        measureToNs = measureFromNs + TimeUnit.SECONDS.toNanos(options.seconds);
        lastAnswerNs = beginNs;
        boolean isSending = true;
        while (isSending || answered < sent) {
            long nowNs = System.nanoTime();
            int work = 0;
            if (isSending) {
                work = options.offered > 0 ? sendDue(nowNs) : sendRoom(nowNs);
                // In the open loop whatever was due in time is sent, however late.
                isSending = options.offered > 0 ? dueNs(sent) < measureToNs : nowNs < measureToNs;
            }
            work += poll();
            if (wrong != null) {
                throw new RunFailed("the result differs: " + wrong + "; the figures are void.");
            }
            if (nowNs - lastAnswerNs > TimeUnit.SECONDS.toNanos(options.stallS) && answered < sent) {
                members.checkAlive();
                throw new RunFailed("no answer came for " + options.stallS + " s, " + (sent - answered) + " are missing; the members wrote:\n"
                        + members.lastWords());
            }
            idle.idle(work);
        }
        if (answeredHash != sentHash) {
            throw new RunFailed("the result differs: what came back is not what was sent; the figures are void.");
        }
    }

    private long dueNs(long number) {
        return beginNs + (long) (number * (1e9 / options.offered));
    }

    private int sendDue(long nowNs) throws RunFailed {
        int count = 0;
        for (long due = dueNs(sent); due <= nowNs && due < measureToNs && count < BURST_MAX && send(due); due = dueNs(sent)) {
            count++;
        }
        return count;
    }

    private int sendRoom(long nowNs) throws RunFailed {
        int count = 0;
        while (nowNs < measureToNs && sent - answered < options.outstanding && count < BURST_MAX && send(System.nanoTime())) {
            count++;
        }
        return count;
    }

    private boolean send(long dueNs) throws RunFailed {
        Command.write(command, sent, dueNs);
        long result = client.offer(command, 0, options.valueBytes);
        if (result > 0) {
            sentHash = Command.hash(sentHash, sent, dueNs);
            sent++;
            return true;
        }
        if (result != Publication.BACK_PRESSURED && result != Publication.ADMIN_ACTION) {
            members.checkAlive();
            throw new RunFailed("the cluster takes no commands (" + Publication.errorString(result) + "); look whether something else keeps the machine busy.");
        }
        return false;
    }

    private int poll() {
        int work = 0;
        for (int polls = 0; polls < POLLS_MAX; polls++) {
            int some = client.pollEgress();
            if (some == 0) {
                break;
            }
            work += some;
        }
        return work;
    }

    @Override
    public void onMessage(long sessionId, long timestamp, DirectBuffer buffer, int offset, int length, Header header) {
        long number = Command.number(buffer, offset);
        boolean isRight = number == answered && length == options.valueBytes && Command.isWhole(buffer, offset, length);
        if (!isRight && wrong == null) {
            wrong = "command " + number + " of " + length + " bytes was answered where " + answered + " of " + options.valueBytes + " was next";
        }
        long dueNs = Command.dueNs(buffer, offset);
        long nowNs = System.nanoTime();
        lastAnswerNs = nowNs;
        answered++;
        answeredHash = Command.hash(answeredHash, number, dueNs);
        boolean isInTime = nowNs >= measureFromNs && nowNs < measureToNs;
        if (isInTime) {
            answeredInTime++;
        }
        // The closed loop's are those answered within the time; of the open loop every one that was due in it, however late.
        if (options.offered > 0 ? dueNs >= measureFromNs : isInTime) {
            latencies.recordValue(Math.min(nowNs - dueNs, LATENCY_NS_MAX));
        }
    }

    long answered() {
        return answered;
    }

    long hash() {
        return answeredHash;
    }

    void writeTo(Json json) throws RunFailed {
        if (answeredInTime == 0) {
            throw new RunFailed("no answer came within the " + options.seconds + " s measured; measure longer with --seconds.");
        }
        json.put("ops", answeredInTime)
                .put("ops_per_s", (double) answeredInTime / options.seconds)
                .put("mean_us", latencies.getMean() / 1e3)
                .put("p50_us", latencies.getValueAtPercentile(50) / 1e3)
                .put("p99_us", latencies.getValueAtPercentile(99) / 1e3)
                .put("p999_us", latencies.getValueAtPercentile(99.9) / 1e3)
                .put("max_us", latencies.getMaxValue() / 1e3);
    }
}
