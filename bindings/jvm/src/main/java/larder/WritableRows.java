package larder;

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
     * Java's does. Atomic. A {@link LarderException} if the value is no integer.
     */
    public long addAndGet(K key, long increment) {
        return store.add(checked(key), increment);
    }

    /** Deletes the rows for which a match specification gives true; how many. */
    public long selectDelete(String spec) {
        return store.selectDelete(Objects.requireNonNull(spec, "spec"));
    }
}
