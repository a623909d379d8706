package larder;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;

/** A table of longs to bytes; else as {@link LarderBytesTable}. */
public final class LarderLongBytesTable extends LarderTable<Long, byte[]> {
    LarderLongBytesTable(Store<Long, byte[]> store) {
        super(store);
    }

    /** Begins a table of longs to bytes. */
    public static TableBuilder<LarderLongBytesTable> builder() {
        return new TableBuilder<>(
                opening -> new LarderLongBytesTable(new Store<>(opening, Codec.LONG, Codec.BYTES)));
    }

    /**
     * Makes a table of a file; see {@link LarderTable#load}.
     *
     * @throws IOException as there
     */
    public static LarderLongBytesTable load(Path file) throws IOException {
        return new LarderLongBytesTable(
                new Store<>(() -> Store.load(file), Codec.LONG, Codec.BYTES));
    }

    /** Copies the value to an array, if it has the room; its length, -1 for no row. */
    public int get(long key, byte[] into) {
        return BytesAccess.get(store, key, null, 0, 0, into, 0, into.length);
    }

    /**
     * Copies the value to {@code room} bytes of an array from a place on, if that is enough; its
     * length, -1 for no row. An IndexOutOfBoundsException if the array has no such part.
     */
    public int get(long key, byte[] into, int intoAt, int room) {
        return BytesAccess.get(store, key, null, 0, 0, into, intoAt, room);
    }

    /** Copies the value to a buffer, if it has the room; its length, -1 for no row. */
    public int get(long key, ByteBuffer into) {
        return BytesAccess.get(store, key, null, into);
    }

    /** Puts a row, and gives nothing. Atomic. */
    public void set(long key, byte[] value) {
        BytesAccess.set(store, key, null, 0, 0, value, 0, value.length);
    }

    /**
     * Puts a row of a part of an array; as {@link #set(long, byte[])}. An IndexOutOfBoundsException
     * as for get.
     */
    public void set(long key, byte[] value, int valueAt, int count) {
        BytesAccess.set(store, key, null, 0, 0, value, valueAt, count);
    }

    /** Puts a row of what is left in a buffer, which stays as it is. Atomic. */
    public void set(long key, ByteBuffer value) {
        BytesAccess.set(store, key, null, value);
    }

    /** Removes a row; whether there was one. */
    public boolean delete(long key) {
        return BytesAccess.delete(store, key, null);
    }

    @Override
    LarderView<Long, byte[]> view(long number) {
        return new LarderLongBytesView(store.view(number));
    }
}
