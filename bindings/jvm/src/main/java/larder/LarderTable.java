package larder;

import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalLong;

/**
 * A table of rows in the order of their keys, outside the heap: the collector sees none of it. Any
 * number of threads use it at once.
 *
 * <p>It is a {@link java.util.concurrent.ConcurrentNavigableMap}. Keys and values are copied in and
 * out by their {@link Codec}s: a value that was got and changed is not changed in the table. {@code
 * putAll} puts all rows at once: nobody sees some of them without the others.
 *
 * <p>After {@link #close}, every method of the table and of its views and iterators throws an {@link
 * IllegalStateException}. Calls that are under way end before, or throw it too. A table that is
 * left without being closed is closed some time after the collector finds that.
 *
 * <pre>{@code
 * try (LarderTable<String, Long> ages = LarderTable.builder(Codec.STRING, Codec.LONG).open()) {
 *     ages.put("Ann", 34L);
 *     ages.merge("Ann", 1L, Long::sum);
 *     ages.tailMap("A").forEach((name, age) -> System.out.println(name + " " + age));
 * }
 * }</pre>
 */
public class LarderTable<K, V> extends RangeView<K, V> implements AutoCloseable {
    LarderTable(Store<K, V> store) {
        super(store, Store.Bounds.all(), false);
    }

    /** Begins a table of keys and values of any type. */
    public static <K, V> TableBuilder<LarderTable<K, V>> builder(Codec<K> keys, Codec<V> values) {
        Objects.requireNonNull(keys, "keys");
        Objects.requireNonNull(values, "values");
        return new TableBuilder<>(id -> new LarderTable<>(new Store<>(id, keys, values)));
    }

    /** Gives the table up. Calls that use it are waited for. Snapshots of it stay. */
    @Override
    public void close() {
        store.close();
    }

    @Override
    public void putAll(Map<? extends K, ? extends V> rows) {
        store.putAll(rows);
    }

    /** Puts a row, and gives nothing: the quickest way. */
    public void set(K key, V value) {
        store.set(checked(key), checked(value));
    }

    /**
     * Adds to the integer under a key, 0 where there is none, and gives the sum, which wraps as
     * Java's does. Atomic. A {@link LarderException} if the value is no integer.
     */
    public long addAndGet(K key, long increment) {
        return store.add(checked(key), increment);
    }

    /** The table as it is now. O(1). */
    public LarderSnapshot<K, V> snapshot() {
        return new LarderSnapshot<>(store.snapshot());
    }

    /**
     * Bytes that the table holds outside the heap, but for values of more than 127 bytes, which are
     * kept beside it.
     */
    public long memory() {
        return store.memory();
    }

    // Times. They throw an UnsupportedOperationException for a table made without any.

    /** Puts a row that lives for so long, whatever the table's own time. */
    public void putFor(K key, V value, Duration time) {
        store.putFor(checked(key), checked(value), TableBuilder.ms(time, "time"));
    }

    /** Gives a row so long to live, from now on; whether there is one. */
    public boolean expire(K key, Duration time) {
        return store.expire(checked(key), TableBuilder.ms(time, "time"));
    }

    /** Has a row live until it is removed; whether there is one. */
    public boolean persist(K key) {
        return store.expire(checked(key), -1);
    }

    /** How long a row has left: FOREVER's duration for ever, null if there is none. */
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

    /** Deletes the rows for which it gives true; how many. */
    public long selectDelete(String spec) {
        return store.selectDelete(Objects.requireNonNull(spec, "spec"));
    }
}
