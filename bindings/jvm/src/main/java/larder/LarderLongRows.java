package larder;

/**
 * The calls of a {@link LarderLongTable} and of a {@link LarderLongView} that make no objects.
 * Those that give a value give {@link #absent} where there is no row.
 */
public sealed interface LarderLongRows permits LarderLongTable, LarderLongView {
    private LongStore store() {
        return (LongStore) ((RangeView<?, ?>) this).store;
    }

    /** What stands for no row. */
    default long absent() {
        return store().absent;
    }

    /** The value under a key. */
    default long get(long key) {
        return get(key, absent());
    }

    /** The value under a key, or another number where there is no row. */
    default long get(long key, long otherwise) {
        return store().get(key, otherwise);
    }

    /** Whether there is a row under a key. */
    default boolean containsKey(long key) {
        return store().has(key);
    }

    /** Puts a value and gives the one that was there. */
    default long put(long key, long value) {
        return store().put(key, value);
    }

    /** Puts a value, and gives nothing. So it reads no earlier value. */
    default void set(long key, long value) {
        store().set(key, value);
    }

    /** Puts a value unless there is one, and gives that. */
    default long putIfAbsent(long key, long value) {
        return store().putNew(key, value);
    }

    /** Adds to the value, 0 where there is no row; the sum, which wraps. Atomic. */
    default long addAndGet(long key, long increment) {
        return store().add(key, increment);
    }

    /** Puts a value in place of the expected one; whether it did. */
    default boolean compareAndSet(long key, long expected, long value) {
        return store().swap(key, expected, value);
    }

    /** Removes a row and gives its value. */
    default long remove(long key) {
        return store().remove(key);
    }

    /** Calls a function with the rows from one key to another, both included, in order. */
    default void scan(long from, long to, LarderLongTable.Rows rows) {
        store().scan(from, to, rows);
    }
}
