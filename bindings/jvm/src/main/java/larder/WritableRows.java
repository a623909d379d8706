package larder;

import java.time.Duration;
import java.util.Map;
import java.util.Objects;

/** All rows of a table or of a transaction's view, with writes that a map has not. */
abstract class WritableRows<K, V> extends QueriedRows<K, V> {
    WritableRows(Store<K, V> store) {
        super(store);
    }

    @Override
    public void putAll(Map<? extends K, ? extends V> rows) {
        store.putAll(rows);
    }

    /** Puts a row, and gives nothing. So it reads no earlier value. */
    public void set(K key, V value) {
        store.set(checked(key), checked(value));
    }

    /**
     * Adds to the integer under a key, 0 where there is none, and gives the sum, which wraps as
     * Java's does: as an int if the codec is {@link Codec#INTEGER}, else as a long. Atomic. A
     * {@link LarderException} if the value is no integer.
     */
    public long addAndGet(K key, long increment) {
        return store.add(checked(key), increment);
    }

    // Times. They throw an UnsupportedOperationException for a table made without any. Those that a
    // transaction gives begin when it takes effect.

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

    /** Deletes the rows for which a match specification gives true; how many. */
    public long selectDelete(String spec) {
        return store.selectDelete(Objects.requireNonNull(spec, "spec"));
    }
}
