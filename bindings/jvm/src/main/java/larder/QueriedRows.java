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
     * How long a row has left: FOREVER's duration for ever, null if there is none. In a snapshot or
     * a transaction, as of its instant; of a row that the transaction has put, all of its time. An
     * UnsupportedOperationException for a table made without times.
     */
    public Duration timeLeft(K key) {
        long ms = store.timeLeft(checked(key));
        if (ms == -2) {
            return null;
        }
        return ms == -1 ? ChronoUnit.FOREVER.getDuration() : Duration.ofMillis(ms);
    }

    // Ranks, in O(log n). A table with times or limits has none: an UnsupportedOperationException.

    /** How many rows have a key up to this one, if it is there. */
    public OptionalLong rank(K key) {
        long rank = store.rank(checked(key));
        return rank == 0 ? OptionalLong.empty() : OptionalLong.of(rank);
    }

    /** The n-th row: from 1 on from the first, from -1 on from the last; null if there is none. */
    public Map.Entry<K, V> nth(long n) {
        return store.nth(n);
    }

    // Match specifications, as texts in Erlang's syntax, of rows {Key, Value}. An
    // IllegalArgumentException says what is wrong with one.

    /** The rows that one gives, as by ['$_'], in the order of keys. */
    public List<Map.Entry<K, V>> select(String spec) {
        return store.select(Objects.requireNonNull(spec, "spec"));
    }

    /** For how many rows it gives true. */
    public long selectCount(String spec) {
        return store.selectCount(Objects.requireNonNull(spec, "spec"));
    }
}
