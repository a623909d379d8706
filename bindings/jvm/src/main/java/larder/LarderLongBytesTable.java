package larder;

import java.io.IOException;
import java.nio.file.Path;

/** A table of longs to bytes; else as {@link LarderBytesTable}. */
public final class LarderLongBytesTable extends LarderTable<Long, byte[]>
        implements LarderLongBytesRows {
    LarderLongBytesTable(BytesStore<Long> store) {
        super(store);
    }

    /** Begins a table of longs to bytes. */
    public static TableBuilder<LarderLongBytesTable> builder() {
        return new TableBuilder<>(
                opening -> new LarderLongBytesTable(new BytesStore<>(opening, Codec.LONG)));
    }

    /**
     * Makes a table of a file; see {@link LarderTable#load}.
     *
     * @throws IOException as there
     */
    public static LarderLongBytesTable load(Path file) throws IOException {
        return new LarderLongBytesTable(new BytesStore<>(() -> Store.load(file), Codec.LONG));
    }

    @Override
    LarderView<Long, byte[]> view(long number) {
        return new LarderLongBytesView((BytesStore<Long>) store.view(number));
    }
}
