package larder;

import java.io.IOException;
import java.nio.file.Path;

/**
 * A table of bytes to bytes, in the order of unsigned bytes, with methods that make no objects.
 * Where a value goes to the caller's array or buffer, its length is given, or -1 if there is no
 * row; if there is less room than that, nothing is written.
 *
 * <p>Of buffers, what is between position and limit counts. A key's and a value's position stays;
 * that of a buffer which gets a value is after it then. Neither side makes an object if both
 * buffers are direct, or both have arrays.
 */
public final class LarderBytesTable extends LarderTable<byte[], byte[]>
        implements LarderBytesRows {
    LarderBytesTable(BytesStore<byte[]> store) {
        super(store);
    }

    /** Begins a table of bytes to bytes. */
    public static TableBuilder<LarderBytesTable> builder() {
        return new TableBuilder<>(
                opening -> new LarderBytesTable(new BytesStore<>(opening, Codec.BYTES)));
    }

    /**
     * Makes a table of a file; see {@link LarderTable#load}.
     *
     * @throws IOException as there
     */
    public static LarderBytesTable load(Path file) throws IOException {
        return new LarderBytesTable(new BytesStore<>(() -> Store.load(file), Codec.BYTES));
    }

    @Override
    LarderView<byte[], byte[]> view(long number) {
        return new LarderBytesView((BytesStore<byte[]>) store.view(number));
    }
}
