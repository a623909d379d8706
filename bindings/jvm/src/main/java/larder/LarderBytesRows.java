package larder;

import java.nio.ByteBuffer;

/**
 * The calls of a {@link LarderBytesTable} and of a {@link LarderBytesView} that make no objects;
 * the table says what arrays and buffers have to be.
 */
public sealed interface LarderBytesRows permits LarderBytesTable, LarderBytesView {
    @SuppressWarnings("unchecked")
    private BytesStore<byte[]> store() {
        return (BytesStore<byte[]>) ((RangeView<?, ?>) this).store;
    }

    /** Copies the value to an array, if it has the room; its length, -1 for no row. */
    default int get(byte[] key, byte[] into) {
        return store().get(0, RangeView.checked(key), 0, key.length, into, 0, into.length);
    }

    /**
     * Copies the value to {@code room} bytes of an array from a place on, if that is enough; its
     * length, -1 for no row. An IndexOutOfBoundsException if the array has no such part.
     */
    default int get(byte[] key, int at, int length, byte[] into, int intoAt, int room) {
        return store().get(0, RangeView.checked(key), at, length, into, intoAt, room);
    }

    /** Copies the value to a buffer, if it has the room; its length, -1 for no row. */
    default int get(ByteBuffer key, ByteBuffer into) {
        return store().get(0, RangeView.checked(key), into);
    }

    /**
     * Puts a row of parts of arrays; as {@link LarderTable#set}. An IndexOutOfBoundsException
     * as for get.
     */
    default void set(byte[] key, int at, int length, byte[] value, int valueAt, int count) {
        store().set(0, RangeView.checked(key), at, length, value, valueAt, count);
    }

    /** Puts a row of what is left in buffers, which stay as they are. Atomic. */
    default void set(ByteBuffer key, ByteBuffer value) {
        store().set(0, RangeView.checked(key), value);
    }

    /** Removes a row; whether there was one. */
    default boolean delete(byte[] key) {
        return store().delete(0, RangeView.checked(key));
    }
}
