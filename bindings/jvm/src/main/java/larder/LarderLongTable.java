package larder;

import java.io.IOException;
import java.lang.ref.Reference;
import java.nio.file.Path;

/**
 * A table of longs to longs, with methods that make no objects. Those that give a value give {@link
 * #absent} where there is no row, as chosen when the table was made, or 0.
 */
public final class LarderLongTable extends LarderTable<Long, Long> {
    private static final long ONE = 0x9E3779B97F4A7C15L;
    private static final long OTHER = ONE + 1;
    private final long id;
    private final long absent;

    LarderLongTable(Store<Long, Long> store, long absent) {
        super(store);
        this.id = store.id;
        this.absent = absent;
    }

    /** A table whose methods give 0 where there is no row. */
    public static TableBuilder<LarderLongTable> builder() {
        return builder(0);
    }

    /** A table whose methods give this number where there is no row. */
    public static TableBuilder<LarderLongTable> builder(long absent) {
        return new TableBuilder<>(opening -> new LarderLongTable(new Store<>(opening, Codec.LONG, Codec.LONG), absent));
    }

    /**
     * Makes a table of a file; see {@link LarderTable#load}. Its methods give 0 where there is no
     * row.
     *
     * @throws IOException as there
     */
    public static LarderLongTable load(Path file) throws IOException {
        return load(file, 0);
    }

    /**
     * As {@link #load(Path)}; the table's methods give this number where there is no row.
     *
     * @throws IOException as there
     */
    public static LarderLongTable load(Path file, long absent) throws IOException {
        return new LarderLongTable(new Store<>(() -> Store.load(file), Codec.LONG, Codec.LONG), absent);
    }

    /** What stands for no row. */
    public long absent() {
        return absent;
    }

    /** The value under a key. */
    public long get(long key) {
        return get(key, absent);
    }

    /** The value under a key, or another number where there is no row. */
    public long get(long key, long otherwise) {
        try {
            return Native.getLong(id, key, otherwise);
        } finally {
            Reference.reachabilityFence(store);
        }
    }

    /** As of any map, but without bytes of a request. Of two numbers at most one is the value. */
    @Override
    public Long get(Object key) {
        long number = (Long) checked(key);
        long value = get(number, ONE);
        if (value == ONE) {
            value = get(number, OTHER);
            if (value == OTHER) {
                return null;
            }
        }
        return value;
    }

    /** Whether there is a row under a key. */
    public boolean containsKey(long key) {
        try {
            return Native.hasLong(id, key);
        } finally {
            Reference.reachabilityFence(store);
        }
    }

    /** Puts a value and gives the one that was there. */
    public long put(long key, long value) {
        try {
            return Native.putLong(id, key, value, absent);
        } finally {
            Reference.reachabilityFence(store);
        }
    }

    /** Puts a value and gives nothing: the quickest way. */
    public void set(long key, long value) {
        try {
            Native.setLong(id, key, value);
        } finally {
            Reference.reachabilityFence(store);
        }
    }

    /** Puts a value unless there is one, and gives that. */
    public long putIfAbsent(long key, long value) {
        try {
            return Native.putNewLong(id, key, value, absent);
        } finally {
            Reference.reachabilityFence(store);
        }
    }

    /** Adds to the value, 0 where there is no row; the sum, which wraps. Atomic. */
    public long addAndGet(long key, long increment) {
        try {
            return Native.addLong(id, key, increment);
        } finally {
            Reference.reachabilityFence(store);
        }
    }

    /** Puts a value in place of the expected one; whether it did. */
    public boolean compareAndSet(long key, long expected, long value) {
        try {
            return Native.swapLong(id, key, expected, value);
        } finally {
            Reference.reachabilityFence(store);
        }
    }

    /** Removes a row and gives its value. */
    public long remove(long key) {
        try {
            return Native.removeLong(id, key, absent);
        } finally {
            Reference.reachabilityFence(store);
        }
    }

    /** What {@link #scan} calls with each row. */
    @FunctionalInterface
    public interface Rows {
        /** Takes a row; it may use and close any table. */
        void accept(long key, long value);
    }

    /** Calls a function with the rows from one key to another, both included, in order. */
    public void scan(long from, long to, Rows rows) {
        long[] next = {from};
        boolean isLast = next[0] > to;
        while (!isLast) {
            isLast = store.page(new Store.Bounds<>(next[0], true, to, true), false, 256, (reply, count) -> {
                for (int i = 0; i < count; i++) {
                    next[0] = reply.integerItem();
                    rows.accept(next[0], reply.integerItem());
                }
            }) || next[0] == Long.MAX_VALUE;
            next[0]++;
        }
    }
}
