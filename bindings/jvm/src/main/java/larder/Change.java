package larder;

/**
 * A change of a table, as a {@link LarderFeed} tells it. Rows are as they were stored; what is
 * missing is null.
 *
 * @param type what happened
 * @param key the key of the row; null for {@code CLEAR}, {@code OVERFLOW} and {@code GONE}
 * @param before the value before the change; null for {@code INSERT}, too
 * @param after the value after the change: of {@code INSERT} and {@code REPLACE}
 * @param lost how many changes were lost: of {@code OVERFLOW}
 */
public record Change<K, V>(Type type, K key, V before, V after, long lost) {
    /** What happened to a row, or to the table. */
    public enum Type {
        /** A row was put under a new key. */
        INSERT,
        /** A value was put in place of another, or of an equal one. */
        REPLACE,
        /** A row was removed. */
        DELETE,
        /** A row's time was over. */
        EXPIRE,
        /** A row had to go, since the table had as much as it may. */
        EVICT,
        /** All rows were removed at once. */
        CLEAR,
        /** The feed fell behind by more than its limit, and the oldest changes were lost. */
        OVERFLOW,
        /** The table was closed. No change follows. */
        GONE
    }
}
