package walras.peer;

import java.nio.ByteOrder;
import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;

/** The bytes of a command: its number, when it was due on the client's clock, its number again turned around, and filler. */
final class Command {
    static final int BYTES_MIN = 24;
    /** What a hash of no commands is. */
    static final long HASH_OF_NONE = 0xcbf29ce484222325L;

    private static final byte FILLER = 'a';

    private Command() {}

    static void fill(MutableDirectBuffer buffer, int length) {
        buffer.setMemory(0, length, FILLER);
    }

    static void write(MutableDirectBuffer buffer, long number, long dueNs) {
        buffer.putLong(0, number, ByteOrder.LITTLE_ENDIAN);
        buffer.putLong(8, dueNs, ByteOrder.LITTLE_ENDIAN);
        buffer.putLong(16, ~number, ByteOrder.LITTLE_ENDIAN);
    }

    static long number(DirectBuffer buffer, int offset) {
        return buffer.getLong(offset, ByteOrder.LITTLE_ENDIAN);
    }

    static long dueNs(DirectBuffer buffer, int offset) {
        return buffer.getLong(offset + 8, ByteOrder.LITTLE_ENDIAN);
    }

    static boolean isWhole(DirectBuffer buffer, int offset, int length) {
        return buffer.getLong(offset + 16, ByteOrder.LITTLE_ENDIAN) == ~number(buffer, offset)
                && (length == BYTES_MIN || buffer.getByte(offset + length - 1) == FILLER);
    }

    /** Depends on every command before and on their order. */
    static long hash(long before, long number, long dueNs) {
        return ((before ^ number) * 0x100000001b3L ^ dueNs) * 0x100000001b3L;
    }
}
