package larder;

import java.nio.ByteBuffer;

/** A {@link LarderLongBytesTable} within a transaction, with methods that make no objects. */
public final class LarderLongBytesView extends LarderView<Long, byte[]> {
    LarderLongBytesView(Store<Long, byte[]> store) {
        super(store);
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

    /** Puts a row, and gives nothing. */
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

    /** Puts a row of what is left in a buffer, which stays as it is. */
    public void set(long key, ByteBuffer value) {
        BytesAccess.set(store, key, null, value);
    }

    /** Removes a row; whether there was one. */
    public boolean delete(long key) {
        return BytesAccess.delete(store, key, null);
    }
}
