package larder;

/**
 * A table within a transaction: its rows as of the transaction's instant, with what the transaction
 * has written, which nobody else sees before it takes effect. What is read here is checked at the
 * end, absent keys and ranges among it; see {@link LarderTransaction}.
 *
 * <p>It is a map as its table is. Other threads may use it while the transaction's body runs. But
 * ranks assume one call at a time: if another thread writes to the view meanwhile, its ranks may be
 * wrong for the rest of the attempt. After the transaction, every method of the view, of its ranges
 * and of its iterators that asks the table throws an {@link IllegalStateException}.
 */
public final class LarderView<K, V> extends WritableRows<K, V> {
    LarderView(Store<K, V> store) {
        super(store);
    }
}
