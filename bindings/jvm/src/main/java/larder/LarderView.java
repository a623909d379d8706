package larder;

/**
 * A table within a transaction: its rows as of the transaction's instant, with what the transaction
 * has written, which nobody else sees before it takes effect. What is read here is checked at the
 * end, absent keys and ranges among it; see {@link LarderTransaction}.
 *
 * <p>It is a map as its table is. Other threads may use it while the transaction's body runs. But
 * ranks assume one call at a time: if another thread writes to the view meanwhile, its ranks may be
 * wrong for the rest of the attempt. It may be used until the transaction's commit begins, which is
 * when the body has returned. A call of another thread that is in progress then ends before, and
 * what it has written is committed with the rest. After that, or if the body throws, every method
 * of the view, of its ranges and of its iterators that asks the table throws an {@link
 * IllegalStateException}, also if the body is called again: that call has views of its own.
 */
public sealed class LarderView<K, V> extends WritableRows<K, V>
        permits LarderLongView, LarderBytesView, LarderLongBytesView {
    LarderView(Store<K, V> store) {
        super(store);
    }
}
