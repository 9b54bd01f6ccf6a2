package walras.peer;

import exchange.core2.core.common.L2MarketData;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * What a run of a stream leads to. Two runs are equal when all of it is.
 *
 * @param trades how many fills there were
 * @param volume what they traded in all, in lots
 * @param askLevels price levels left on the ask side
 * @param bidLevels price levels left on the bid side
 * @param l2Hash FNV-1a, 64 bits (with a start of its own, see below), over the book that is left, whole words: asks from best to worst (price, volume), then bids
 */
record Outcome(long trades, long volume, int askLevels, int bidLevels, long l2Hash) {
    /**
     * What the `.expect` files start from. FNV's own 64-bit offset basis is 14695981039346656037; theirs lacks its last digit, and with
     * the right one no hash of theirs is met.
     */
    private static final long FNV_OFFSET = 1_469_598_103_934_665_603L;

    private static final long FNV_PRIME = 0x100000001b3L;
    private static final Pattern TRADES = Pattern.compile("^trades (\\d+) volume (\\d+)\\b", Pattern.MULTILINE);
    private static final Pattern LEVELS = Pattern.compile("^levels ask (\\d+) bid (\\d+)\\b", Pattern.MULTILINE);
    private static final Pattern HASH = Pattern.compile("^l2hash\\b.*?\\s(\\d+)\\s*$", Pattern.MULTILINE);

    static Outcome of(long trades, long volume, L2MarketData book) {
        long hash = FNV_OFFSET;
        for (int level = 0; level < book.askSize; level++) {
            hash = fold(fold(hash, book.askPrices[level]), book.askVolumes[level]);
        }
        for (int level = 0; level < book.bidSize; level++) {
            hash = fold(fold(hash, book.bidPrices[level]), book.bidVolumes[level]);
        }
        return new Outcome(trades, volume, book.askSize, book.bidSize, hash);
    }

    /** Reads the `.expect` file of a workload. */
    static Outcome readExpected(Path path) throws BadInput, IOException {
        String text = Files.readString(path);
        Matcher trades = TRADES.matcher(text);
        Matcher levels = LEVELS.matcher(text);
        Matcher hash = HASH.matcher(text);
        if (!trades.find() || !levels.find() || !hash.find()) {
            throw new BadInput(path + " lacks its `trades ... volume ...`, `levels ask ... bid ...` or `l2hash(...) ...` line;"
                    + " copy it again, or name another with --expect FILE.");
        }
        try {
            return new Outcome(
                    Long.parseLong(trades.group(1)),
                    Long.parseLong(trades.group(2)),
                    Integer.parseInt(levels.group(1)),
                    Integer.parseInt(levels.group(2)),
                    Long.parseUnsignedLong(hash.group(1)));
        } catch (NumberFormatException overflow) {
            throw new BadInput(path + " holds a number over 64 bits; copy it again, or name another with --expect FILE.");
        }
    }

    private static long fold(long hash, long word) {
        return (hash ^ word) * FNV_PRIME;
    }

    @Override
    public String toString() {
        return "trades " + trades + " volume " + volume + " levels " + askLevels + "+" + bidLevels + " l2hash " + Long.toUnsignedString(l2Hash);
    }
}
