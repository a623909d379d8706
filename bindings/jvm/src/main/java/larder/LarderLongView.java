package larder;

/**
 * A {@link LarderLongTable} within a transaction, with methods that make no objects. Those that
 * give a value give {@link #absent} where there is no row, as those of the table do.
 */
public final class LarderLongView extends LarderView<Long, Long> implements LarderLongRows {
    LarderLongView(LongStore store) {
        super(store);
    }
}
