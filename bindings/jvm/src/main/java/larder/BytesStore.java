package larder;

import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.util.Objects;

/**
 * A table of longs or bytes to bytes, or a transaction's view of one, with calls that make no
 * object: values are in the caller's arrays and buffers. A key is bytes, or a number if these are
 * null.
 */
final class BytesStore<K> extends Store<K, byte[]> {
    /** The length of the array through which a value goes at first to a direct buffer. */
    private static final int SHORT = 1024;

    <X extends Exception> BytesStore(Owned.Opening<X> opening, Codec<K> keys) throws X {
        super(opening, keys, Codec.BYTES);
    }

    private BytesStore(BytesStore<K> table, long view) {
        super(table, view);
    }

    @Override
    BytesStore<K> view(long view) {
        return new BytesStore<>(this, view);
    }

    /** As of any store, but without the bytes of a request. */
    @Override
    void set(K key, byte[] value) {
        if (key instanceof byte[] bytes) {
            set(0, bytes, 0, bytes.length, value, 0, value.length);
        } else {
            set((Long) key, null, 0, 0, value, 0, value.length);
        }
    }

    int get(
            long number, byte[] key, int at, int length,
            byte[] into, int intoAt, int room) {
        if (key != null) {
            Objects.checkFromIndexSize(at, length, key.length);
        }
        Objects.checkFromIndexSize(intoAt, room, into.length);
        return kept(Native.getBytes(id, number, key, at, length, into, intoAt, room));
    }

    void set(
            long number, byte[] key, int at, int length,
            byte[] value, int valueAt, int count) {
        if (key != null) {
            Objects.checkFromIndexSize(at, length, key.length);
        }
        Objects.checkFromIndexSize(valueAt, count, value.length);
        Native.putBytes(id, number, key, at, length, value, valueAt, count);
        Reference.reachabilityFence(this);
    }

    boolean delete(long number, byte[] key) {
        return kept(Native.deleteBytes(id, number, key, 0, key == null ? 0 : key.length));
    }

    /** The value goes to the buffer's position, which is then after it, if there is room. */
    int get(long number, ByteBuffer key, ByteBuffer into) {
        if (into.isReadOnly()) {
            throw new java.nio.ReadOnlyBufferException();
        }
        checkAlive(key);
        checkAlive(into);
        int length = lengthOf(key);
        int room = into.remaining();
        int found;
        if (isDirect(key) && into.isDirect()) {
            found = kept(Native.getDirect(
                    id, number, key, directAt(key), length, into, into.position(), room));
        } else if (into.hasArray()) {
            found = get(
                    number, bytes(key), place(key), length,
                    into.array(), place(into), room);
        } else {
            byte[] from = bytes(key);
            byte[] copy = new byte[Math.min(room, SHORT)];
            found = get(number, from, place(key), length, copy, 0, copy.length);
            // As long as the value, however much room there is. It may have changed meanwhile.
            while (found > copy.length && found <= room) {
                copy = new byte[found];
                found = get(number, from, place(key), length, copy, 0, found);
            }
            if (found >= 0 && found <= room) {
                into.duplicate().put(copy, 0, found);
            }
        }
        if (found >= 0 && found <= room) {
            into.position(into.position() + found);
        }
        return found;
    }

    void set(long number, ByteBuffer key, ByteBuffer value) {
        checkAlive(key);
        checkAlive(value);
        int length = lengthOf(key);
        int count = value.remaining();
        if (isDirect(key) && value.isDirect()) {
            Native.putDirect(
                    id, number, key, directAt(key), length, value, value.position(), count);
            Reference.reachabilityFence(this);
        } else {
            set(number, bytes(key), place(key), length, bytes(value), place(value), count);
        }
    }

    /**
     * Throws an IllegalStateException if the buffer is of a memory segment that is closed: the
     * native library would use memory that was freed.
     */
    private static void checkAlive(ByteBuffer buffer) {
        if (buffer != null && buffer.hasRemaining()) {
            buffer.get(buffer.position());
        }
    }

    private static boolean isDirect(ByteBuffer buffer) {
        return buffer == null || buffer.isDirect();
    }

    /** A buffer's own array, or a copy of what is left in it. */
    private static byte[] bytes(ByteBuffer buffer) {
        if (buffer == null || buffer.hasArray()) {
            return buffer == null ? null : buffer.array();
        }
        byte[] copy = new byte[buffer.remaining()];
        buffer.duplicate().get(copy);
        return copy;
    }

    /** Where what is left in a buffer begins in those bytes. */
    private static int place(ByteBuffer buffer) {
        return buffer != null && buffer.hasArray() ? buffer.arrayOffset() + buffer.position() : 0;
    }

    private static int lengthOf(ByteBuffer key) {
        return key == null ? 0 : key.remaining();
    }

    private static int directAt(ByteBuffer key) {
        return key == null ? 0 : key.position();
    }
}
