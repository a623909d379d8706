package larder;

import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalLong;

/** All rows of a table, a snapshot or a transaction's view, with queries that a map has not. */
abstract class QueriedRows<K, V> extends RangeView<K, V> {
    QueriedRows(Store<K, V> store) {
        super(store, Store.Bounds.all(), false);
    }

    /**
     * Returns how long a row has left, in whole milliseconds: the duration of {@link
     * ChronoUnit#FOREVER} if it doesn't expire, null if there is no such row. In a snapshot or a
     * transaction, as of its instant; of a row that the transaction has put, all of its time. It
     * doesn't count as a read for {@link TableBuilder#idle}. O(log n).
     *
     * @throws UnsupportedOperationException if the table was made without times and limits
     */
    public Duration timeLeft(K key) {
        long ms = store.timeLeft(checked(key));
        if (ms == -2) {
            return null;
        }
        return ms == -1 ? ChronoUnit.FOREVER.getDuration() : Duration.ofMillis(ms);
    }

    /**
     * Returns the rank of a row, which is 1 for the first; empty if there is no such row. O(log n);
     * the first call for a rank also counts the table. Exact in a snapshot, in a transaction, and
     * while nobody puts or removes rows. Otherwise a row that is put or removed during the call may
     * count or not.
     *
     * @throws UnsupportedOperationException if the table has times or limits
     */
    public OptionalLong rank(K key) {
        long rank = store.rank(checked(key));
        return rank == 0 ? OptionalLong.empty() : OptionalLong.of(rank);
    }

    /**
     * Returns the n-th row: counted from 1 from the first, from -1 from the last; null if there is
     * none, as for 0. The cost and the exactness are those of {@link #rank}.
     *
     * @throws UnsupportedOperationException if the table has times or limits
     */
    public Map.Entry<K, V> nth(long n) {
        return store.nth(n);
    }

    /**
     * Returns the rows that a match specification gives, as by ['$_'], in the order of keys. It is
     * a text in Erlang's syntax, of rows {Key, Value}, and is compiled at each call. Linear in the
     * rows that are looked at: those in the range that the pattern or guards set for the key, or
     * else all. A row that is there throughout is given once; what others write meanwhile may be
     * seen or not.
     *
     * @throws IllegalArgumentException if the specification is invalid; it says why
     */
    public List<Map.Entry<K, V>> select(String spec) {
        return store.select(Objects.requireNonNull(spec, "spec"));
    }

    /**
     * Counts the rows for which a match specification gives true. Otherwise as {@link #select}.
     *
     * @throws IllegalArgumentException as {@link #select}
     */
    public long selectCount(String spec) {
        return store.selectCount(Objects.requireNonNull(spec, "spec"));
    }
}
