package larder;

import java.io.IOException;
import java.nio.file.Path;

/**
 * A table of longs to longs, with methods that make no objects. Those that give a value give {@link
 * #absent} where there is no row, as chosen when the table was made, or 0.
 */
public final class LarderLongTable extends LarderTable<Long, Long> {
    private final long absent;

    LarderLongTable(Store<Long, Long> store, long absent) {
        super(store);
        this.absent = absent;
    }

    /** A table whose methods give 0 where there is no row. */
    public static TableBuilder<LarderLongTable> builder() {
        return builder(0);
    }

    /** A table whose methods give this number where there is no row. */
    public static TableBuilder<LarderLongTable> builder(long absent) {
        return new TableBuilder<>(
                opening ->
                        new LarderLongTable(new Store<>(opening, Codec.LONG, Codec.LONG), absent));
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
        return new LarderLongTable(
                new Store<>(() -> Store.load(file), Codec.LONG, Codec.LONG), absent);
    }

    /** What stands for no row. */
    public long absent() {
        return absent;
    }

    /** The value under a key. */
    public long get(long key) {
        return LongAccess.get(store, key, absent);
    }

    /** The value under a key, or another number where there is no row. */
    public long get(long key, long otherwise) {
        return LongAccess.get(store, key, otherwise);
    }

    /** As of any map. */
    @Override
    public Long get(Object key) {
        return LongAccess.get(store, (long) (Long) checked(key));
    }

    /** Whether there is a row under a key. */
    public boolean containsKey(long key) {
        return LongAccess.containsKey(store, key);
    }

    /** Puts a value and gives the one that was there. */
    public long put(long key, long value) {
        return LongAccess.put(store, key, value, absent);
    }

    /** Puts a value, and gives nothing. So it reads no earlier value. */
    public void set(long key, long value) {
        LongAccess.set(store, key, value);
    }

    /** Puts a value unless there is one, and gives that. */
    public long putIfAbsent(long key, long value) {
        return LongAccess.putIfAbsent(store, key, value, absent);
    }

    /** Adds to the value, 0 where there is no row; the sum, which wraps. Atomic. */
    public long addAndGet(long key, long increment) {
        return LongAccess.addAndGet(store, key, increment);
    }

    /** Puts a value in place of the expected one; whether it did. */
    public boolean compareAndSet(long key, long expected, long value) {
        return LongAccess.compareAndSet(store, key, expected, value);
    }

    /** Removes a row and gives its value. */
    public long remove(long key) {
        return LongAccess.remove(store, key, absent);
    }

    /** What {@link #scan} calls with each row. */
    @FunctionalInterface
    public interface Rows {
        /** Takes a row; it may use and close any table. */
        void accept(long key, long value);
    }

    /** Calls a function with the rows from one key to another, both included, in order. */
    public void scan(long from, long to, Rows rows) {
        LongAccess.scan(store, from, to, rows);
    }

    @Override
    LarderView<Long, Long> view(long number) {
        return new LarderLongView(store.view(number), absent);
    }
}
