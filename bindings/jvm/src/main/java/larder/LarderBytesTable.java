package larder;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;

/**
 * A table of bytes to bytes, in the order of unsigned bytes, with methods that make no objects.
 * Where a value goes to the caller's array or buffer, its length is given, or -1 if there is no
 * row; if there is less room than that, nothing is written.
 *
 * <p>Of buffers, what is between position and limit counts. A key's and a value's position stays;
 * that of a buffer which gets a value stands behind it then. Neither side makes an object if both
 * buffers are direct, or both have arrays.
 */
public final class LarderBytesTable extends LarderTable<byte[], byte[]> {
    LarderBytesTable(Store<byte[], byte[]> store) {
        super(store);
    }

    /** Begins a table of bytes to bytes. */
    public static TableBuilder<LarderBytesTable> builder() {
        return new TableBuilder<>(
                opening -> new LarderBytesTable(new Store<>(opening, Codec.BYTES, Codec.BYTES)));
    }

    /**
     * Makes a table of a file; see {@link LarderTable#load}.
     *
     * @throws IOException as there
     */
    public static LarderBytesTable load(Path file) throws IOException {
        return new LarderBytesTable(new Store<>(() -> Store.load(file), Codec.BYTES, Codec.BYTES));
    }

    /** Copies the value to an array, if it has the room; its length, -1 for no row. */
    public int get(byte[] key, byte[] into) {
        return BytesAccess.get(store, 0, checked(key), 0, key.length, into, 0, into.length);
    }

    /**
     * Copies the value to {@code room} bytes of an array from a place on, if that is enough; its
     * length, -1 for no row. An IndexOutOfBoundsException if the array has no such part.
     */
    public int get(byte[] key, int at, int length, byte[] into, int intoAt, int room) {
        return BytesAccess.get(store, 0, checked(key), at, length, into, intoAt, room);
    }

    /** Copies the value to a buffer, if it has the room; its length, -1 for no row. */
    public int get(ByteBuffer key, ByteBuffer into) {
        return BytesAccess.get(store, 0, checked(key), into);
    }

    @Override
    public void set(byte[] key, byte[] value) {
        BytesAccess.set(store, 0, checked(key), 0, key.length, value, 0, value.length);
    }

    /**
     * Puts a row of parts of arrays; as {@link #set(byte[], byte[])}. An IndexOutOfBoundsException
     * as for get.
     */
    public void set(byte[] key, int at, int length, byte[] value, int valueAt, int count) {
        BytesAccess.set(store, 0, checked(key), at, length, value, valueAt, count);
    }

    /** Puts a row of what is left in buffers, which stay as they are. Atomic. */
    public void set(ByteBuffer key, ByteBuffer value) {
        BytesAccess.set(store, 0, checked(key), value);
    }

    /** Removes a row; whether there was one. */
    public boolean delete(byte[] key) {
        return BytesAccess.delete(store, 0, checked(key));
    }

    @Override
    LarderView<byte[], byte[]> view(long number) {
        return new LarderBytesView(store.view(number));
    }
}
