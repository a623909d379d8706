package larder;

/** A {@link LarderBytesTable} within a transaction, with methods that make no objects. */
public final class LarderBytesView extends LarderView<byte[], byte[]> implements LarderBytesRows {
    LarderBytesView(BytesStore<byte[]> store) {
        super(store);
    }
}
