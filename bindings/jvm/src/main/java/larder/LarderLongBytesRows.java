package larder;

import java.nio.ByteBuffer;

/**
 * The calls of a {@link LarderLongBytesTable} and of a {@link LarderLongBytesView} that make no
 * objects; {@link LarderBytesTable} says what arrays and buffers have to be.
 */
public sealed interface LarderLongBytesRows permits LarderLongBytesTable, LarderLongBytesView {
    @SuppressWarnings("unchecked")
    private BytesStore<Long> store() {
        return (BytesStore<Long>) ((RangeView<?, ?>) this).store;
    }

    /** Copies the value to an array, if it has the room; its length, -1 for no row. */
    default int get(long key, byte[] into) {
        return get(key, into, 0, into.length);
    }

    /**
     * Copies the value to {@code room} bytes of an array from a place on, if that is enough; its
     * length, -1 for no row. An IndexOutOfBoundsException if the array has no such part.
     */
    default int get(long key, byte[] into, int intoAt, int room) {
        return store().get(key, null, 0, 0, into, intoAt, room);
    }

    /** Copies the value to a buffer, if it has the room; its length, -1 for no row. */
    default int get(long key, ByteBuffer into) {
        return store().get(key, null, into);
    }

    /** Puts a row, and gives nothing. Atomic. */
    default void set(long key, byte[] value) {
        set(key, value, 0, value.length);
    }

    /**
     * Puts a row of a part of an array; as {@link #set(long, byte[])}. An IndexOutOfBoundsException
     * as for get.
     */
    default void set(long key, byte[] value, int valueAt, int count) {
        store().set(key, null, 0, 0, value, valueAt, count);
    }

    /** Puts a row of what is left in a buffer, which stays as it is. Atomic. */
    default void set(long key, ByteBuffer value) {
        store().set(key, null, value);
    }

    /** Removes a row; whether there was one. */
    default boolean delete(long key) {
        return store().delete(key, null);
    }
}
