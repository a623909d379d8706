package larder;

import java.io.IOException;
import java.nio.file.Path;

/**
 * A table of longs to longs, with methods that make no objects. Those that give a value give {@link
 * #absent} where there is no row, as chosen when the table was made, or 0.
 */
public final class LarderLongTable extends LarderTable<Long, Long> implements LarderLongRows {
    LarderLongTable(LongStore store) {
        super(store);
    }

    /** A table whose methods give 0 where there is no row. */
    public static TableBuilder<LarderLongTable> builder() {
        return builder(0);
    }

    /** A table whose methods give this number where there is no row. */
    public static TableBuilder<LarderLongTable> builder(long absent) {
        return new TableBuilder<>(
                opening -> new LarderLongTable(new LongStore(opening, absent)));
    }

    /**
     * Makes a table of a file; see {@link LarderTable#load}. Its methods give 0 where there is no
     * row.
     *
     * @throws IOException as there
     */
    public static LarderLongTable load(Path file) throws IOException {
        return load(file, 0);
    }

    /**
     * As {@link #load(Path)}; the table's methods give this number where there is no row.
     *
     * @throws IOException as there
     */
    public static LarderLongTable load(Path file, long absent) throws IOException {
        return new LarderLongTable(new LongStore(() -> Store.load(file), absent));
    }

    /** What {@link #scan} calls with each row. */
    @FunctionalInterface
    public interface Rows {
        /** Takes a row; it may use and close any table. */
        void accept(long key, long value);
    }

    @Override
    LarderView<Long, Long> view(long number) {
        return new LarderLongView((LongStore) store.view(number));
    }
}
