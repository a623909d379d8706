package larder;

/**
 * A table as it was at an instant. What writes throws an UnsupportedOperationException. To be
 * closed, like a table: while it is open, what it shows is kept.
 */
public final class LarderSnapshot<K, V> extends QueriedRows<K, V> implements AutoCloseable {
    LarderSnapshot(Store<K, V> store) {
        super(store);
    }

    /** Releases it. Calls that use it are waited for; later ones throw an IllegalStateException. */
    @Override
    public void close() {
        store.close();
    }
}
