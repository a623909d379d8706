package larder;

/** A {@link LarderLongBytesTable} within a transaction, with methods that make no objects. */
public final class LarderLongBytesView extends LarderView<Long, byte[]>
        implements LarderLongBytesRows {
    LarderLongBytesView(BytesStore<Long> store) {
        super(store);
    }
}
