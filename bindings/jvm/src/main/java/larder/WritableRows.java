package larder;

import java.time.Duration;
import java.util.Objects;

/** All rows of a table or of a transaction's view, with writes that a map has not. */
abstract class WritableRows<K, V> extends QueriedRows<K, V> {
    WritableRows(Store<K, V> store) {
        super(store);
    }

    /**
     * Puts a row, and gives nothing. So it reads no earlier value. O(log n).
     *
     * @throws LimitException if the table has as much as it may, and evicts nothing
     */
    public void set(K key, V value) {
        store.set(checked(key), checked(value));
    }

    /**
     * Adds to the integer under a key, 0 where there is none, and gives the sum, which wraps as
     * Java's does: as an int if the codec is {@link Codec#INTEGER}, else as a long. Atomic. A
     * {@link LarderException} if the value is no integer, or the codec of values reads bytes.
     */
    public long addAndGet(K key, long increment) {
        return store.add(checked(key), increment);
    }

    /**
     * Puts a row that lives for so long, in whole milliseconds, of which a part counts as one,
     * whatever the table's own time, until it is put again. With {@link Duration#ZERO} the row
     * expires at once. A time that a transaction gives begins when it takes effect.
     *
     * @throws IllegalArgumentException if the time is below 0
     * @throws UnsupportedOperationException if the table was made without times and limits
     * @throws LimitException as {@link #set}
     */
    public void putFor(K key, V value, Duration time) {
        store.putFor(checked(key), checked(value), TableBuilder.ms(time, "time"));
    }

    /**
     * Gives a row so long to live, from now on, in whole milliseconds; whether there is one. Feeds
     * don't tell it.
     *
     * @throws IllegalArgumentException as {@link #putFor}
     * @throws UnsupportedOperationException as {@link #putFor}
     */
    public boolean expire(K key, Duration time) {
        return store.expire(checked(key), TableBuilder.ms(time, "time"));
    }

    /**
     * Has a row live until it is removed; whether there is one.
     *
     * @throws UnsupportedOperationException as {@link #putFor}
     */
    public boolean persist(K key) {
        return store.expire(checked(key), -1);
    }

    /**
     * Deletes the rows for which a match specification gives true, each by itself, and not all of
     * them at one instant; how many. Otherwise as {@link #select}.
     *
     * @throws IllegalArgumentException as {@link #select}
     */
    public long selectDelete(String spec) {
        return store.selectDelete(Objects.requireNonNull(spec, "spec"));
    }
}
