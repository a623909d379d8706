package larder;

/**
 * A {@link LarderLongTable} within a transaction, with methods that make no objects. Those that
 * give a value give {@link #absent} where there is no row, as those of the table do.
 */
public final class LarderLongView extends LarderView<Long, Long> {
    private final long absent;

    LarderLongView(Store<Long, Long> store, long absent) {
        super(store);
        this.absent = absent;
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

    /** Adds to the value, 0 where there is no row; the sum, which wraps. */
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

    /** Calls a function with the rows from one key to another, both included, in order. */
    public void scan(long from, long to, LarderLongTable.Rows rows) {
        LongAccess.scan(store, from, to, rows);
    }
}
