package larder;

import java.nio.ByteBuffer;

/** A {@link LarderBytesTable} within a transaction, with methods that make no objects. */
public final class LarderBytesView extends LarderView<byte[], byte[]> {
    LarderBytesView(Store<byte[], byte[]> store) {
        super(store);
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

    /** Puts a row of what is left in buffers, which stay as they are. */
    public void set(ByteBuffer key, ByteBuffer value) {
        BytesAccess.set(store, 0, checked(key), value);
    }

    /** Removes a row; whether there was one. */
    public boolean delete(byte[] key) {
        return BytesAccess.delete(store, 0, checked(key));
    }
}
