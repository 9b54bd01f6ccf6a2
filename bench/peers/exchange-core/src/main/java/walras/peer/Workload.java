package walras.peer;

import exchange.core2.core.common.OrderAction;
import exchange.core2.core.common.OrderType;
import exchange.core2.core.common.api.ApiCancelOrder;
import exchange.core2.core.common.api.ApiCommand;
import exchange.core2.core.common.api.ApiMoveOrder;
import exchange.core2.core.common.api.ApiPlaceOrder;
import exchange.core2.core.common.api.ApiReduceOrder;
import exchange.core2.core.common.cmd.OrderCommand;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * A stream of commands read from a file of 32-byte little-endian records: u8 op, u8 side, u16 zero, u32 user, i64 order id, i64 price,
 * i64 size. Every record is validated here, so that what follows may trust it.
 */
final class Workload {
    static final int RECORD_BYTES = 32;
    static final int OP_GTC = 0;
    static final int OP_IOC = 1;
    static final int OP_CANCEL = 2;
    static final int OP_MOVE = 3;
    static final int OP_REDUCE = 4;
    static final String[] OP_NAMES = {"gtc", "ioc", "cancel", "move", "reduce"};

    private static final byte[] XZ_MAGIC = {(byte) 0xFD, '7', 'z', 'X', 'Z', 0};

    final Path path;
    /** True when the whole file was taken, so that the figures of its `.expect` apply. */
    final boolean whole;
    final byte[] ops;
    private final byte[] sides;
    private final int[] users;
    private final long[] orderIds;
    private final long[] prices;
    private final long[] sizes;

    private Workload(Path path, int commandCount, boolean whole) {
        this.path = path;
        this.whole = whole;
        ops = new byte[commandCount];
        sides = new byte[commandCount];
        users = new int[commandCount];
        orderIds = new long[commandCount];
        prices = new long[commandCount];
        sizes = new long[commandCount];
    }

    /** Reads the first {@code commandCountMax} records of the file, or all of them when there are fewer. */
    static Workload read(Path path, long commandCountMax) throws BadInput, IOException {
        if (!Files.isRegularFile(path)) {
            throw new BadInput(path + " is not a file; give the path of an unpacked workload (xz -dk ec_1k_3m.bin.xz makes one).");
        }
        try (FileChannel channel = FileChannel.open(path)) {
            long bytes = channel.size();
            ByteBuffer head = ByteBuffer.allocate(XZ_MAGIC.length);
            if (channel.read(head, 0) == XZ_MAGIC.length && ByteBuffer.wrap(XZ_MAGIC).equals(head.flip())) {
                throw new BadInput(path + " is still compressed; unpack it with xz -dk and give the path without .xz.");
            }
            if (bytes == 0 || bytes % RECORD_BYTES != 0) {
                throw new BadInput(path + " has " + bytes + " bytes, which is not a positive multiple of the " + RECORD_BYTES
                        + "-byte record; unpack or copy the file again.");
            }
            long commandCount = Math.min(bytes / RECORD_BYTES, commandCountMax);
            if (commandCount * RECORD_BYTES > Integer.MAX_VALUE) {
                throw new BadInput(path + " is over 2 GiB; run a part of it with --commands N.");
            }
            Workload workload = new Workload(path, (int) commandCount, commandCount == bytes / RECORD_BYTES);
            ByteBuffer records = channel.map(FileChannel.MapMode.READ_ONLY, 0, commandCount * RECORD_BYTES);
            records.order(ByteOrder.LITTLE_ENDIAN);
            for (int index = 0; index < commandCount; index++) {
                workload.readRecord(records, index);
            }
            return workload;
        }
    }

    private void readRecord(ByteBuffer records, int index) throws BadInput {
        ops[index] = records.get();
        sides[index] = records.get();
        int zero = records.getShort();
        users[index] = records.getInt();
        orderIds[index] = records.getLong();
        prices[index] = records.getLong();
        sizes[index] = records.getLong();
        boolean entry = ops[index] == OP_GTC || ops[index] == OP_IOC;
        boolean valid = ops[index] >= OP_GTC && ops[index] <= OP_REDUCE
                && zero == 0
                && users[index] > 0
                && (!entry || sides[index] == 0 || sides[index] == 1)
                && (!entry && ops[index] != OP_MOVE || prices[index] > 0)
                && (!entry && ops[index] != OP_REDUCE || sizes[index] > 0);
        if (!valid) {
            throw new BadInput("record " + index + " of " + path + " is not a command (op " + ops[index] + ", side " + sides[index] + ", user "
                    + Integer.toUnsignedString(users[index]) + ", price " + prices[index] + ", size " + sizes[index]
                    + "); unpack the file again, and if that does not help generate it again.");
        }
    }

    int commandCount() {
        return ops.length;
    }

    /** The different users of the stream, ascending. */
    int[] distinctUsers() {
        return Arrays.stream(users).sorted().distinct().toArray();
    }

    /** The commands as the order book itself takes them, laid out in memory in stream order. */
    List<OrderCommand> orderCommands() {
        long priceMax = priceMax();
        List<OrderCommand> commands = new ArrayList<>(commandCount());
        for (int index = 0; index < commandCount(); index++) {
            commands.add(switch (ops[index]) {
                case OP_CANCEL -> OrderCommand.cancel(orderIds[index], users[index]);
                case OP_MOVE -> OrderCommand.update(orderIds[index], users[index], prices[index]);
                case OP_REDUCE -> OrderCommand.reduce(orderIds[index], users[index], sizes[index]);
                default -> OrderCommand.newOrder(
                        orderType(index), orderIds[index], users[index], prices[index], priceMax, sizes[index], action(index));
            });
        }
        return commands;
    }

    /** The commands as the pipeline's API takes them, laid out in memory in stream order. */
    List<ApiCommand> apiCommands(int symbolId) {
        long priceMax = priceMax();
        List<ApiCommand> commands = new ArrayList<>(commandCount());
        for (int index = 0; index < commandCount(); index++) {
            commands.add(switch (ops[index]) {
                case OP_CANCEL -> ApiCancelOrder.builder().orderId(orderIds[index]).uid(users[index]).symbol(symbolId).build();
                case OP_MOVE -> ApiMoveOrder.builder()
                        .orderId(orderIds[index]).uid(users[index]).symbol(symbolId).newPrice(prices[index]).build();
                case OP_REDUCE -> ApiReduceOrder.builder()
                        .orderId(orderIds[index]).uid(users[index]).symbol(symbolId).reduceSize(sizes[index]).build();
                default -> ApiPlaceOrder.builder()
                        .orderId(orderIds[index]).uid(users[index]).symbol(symbolId).action(action(index)).orderType(orderType(index))
                        .price(prices[index]).reservePrice(priceMax).size(sizes[index]).build();
            });
        }
        return commands;
    }

    /**
     * The highest price of the stream. Every bid reserves funds up to it: in exchange mode the peer refuses to move a bid above the price
     * that it was reserved at, and the stream moves bids up.
     */
    private long priceMax() {
        return Arrays.stream(prices).max().orElse(1);
    }

    private OrderType orderType(int index) {
        return ops[index] == OP_GTC ? OrderType.GTC : OrderType.IOC;
    }

    private OrderAction action(int index) {
        return sides[index] == 0 ? OrderAction.ASK : OrderAction.BID;
    }
}
