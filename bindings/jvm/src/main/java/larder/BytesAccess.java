package larder;

import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.util.Objects;

/**
 * Values that are bytes, in the caller's arrays and buffers, without an object made. A key is a
 * number, where there are no bytes of one.
 */
final class BytesAccess {
    private BytesAccess() {}

    static int get(
            Store<?, ?> store, long number, byte[] key, int at, int length,
            byte[] into, int intoAt, int room) {
        if (key != null) {
            Objects.checkFromIndexSize(at, length, key.length);
        }
        Objects.checkFromIndexSize(intoAt, room, into.length);
        try {
            return Native.getBytes(store.id, number, key, at, length, into, intoAt, room);
        } finally {
            Reference.reachabilityFence(store);
        }
    }

    static void set(
            Store<?, ?> store, long number, byte[] key, int at, int length,
            byte[] value, int valueAt, int count) {
        if (key != null) {
            Objects.checkFromIndexSize(at, length, key.length);
        }
        Objects.checkFromIndexSize(valueAt, count, value.length);
        try {
            Native.putBytes(store.id, number, key, at, length, value, valueAt, count);
        } finally {
            Reference.reachabilityFence(store);
        }
    }

    static boolean delete(Store<?, ?> store, long number, byte[] key) {
        try {
            return Native.deleteBytes(store.id, number, key, 0, key == null ? 0 : key.length);
        } finally {
            Reference.reachabilityFence(store);
        }
    }

    /** The value goes to the buffer's position, which then stands behind it, if there is room. */
    static int get(Store<?, ?> store, long number, ByteBuffer key, ByteBuffer into) {
        if (into.isReadOnly()) {
            throw new java.nio.ReadOnlyBufferException();
        }
        int found;
        if (isDirect(key) && into.isDirect()) {
            try {
                int at = key == null ? 0 : key.position();
                int length = key == null ? 0 : key.remaining();
                found = Native.getDirect(
                        store.id, number, key, at, length, into, into.position(), into.remaining());
            } finally {
                Reference.reachabilityFence(store);
            }
        } else {
            byte[] keyBytes = bytes(key);
            int at = place(key);
            int length = key == null ? 0 : key.remaining();
            if (into.hasArray()) {
                found = get(
                        store, number, keyBytes, at, length,
                        into.array(), into.arrayOffset() + into.position(), into.remaining());
            } else {
                byte[] copy = new byte[into.remaining()];
                found = get(store, number, keyBytes, at, length, copy, 0, copy.length);
                if (found >= 0 && found <= copy.length) {
                    into.duplicate().put(copy, 0, found);
                }
            }
        }
        if (found >= 0 && found <= into.remaining()) {
            into.position(into.position() + found);
        }
        return found;
    }

    static void set(Store<?, ?> store, long number, ByteBuffer key, ByteBuffer value) {
        if (isDirect(key) && value.isDirect()) {
            try {
                int at = key == null ? 0 : key.position();
                int length = key == null ? 0 : key.remaining();
                Native.putDirect(
                        store.id, number, key, at, length,
                        value, value.position(), value.remaining());
            } finally {
                Reference.reachabilityFence(store);
            }
            return;
        }
        byte[] keyBytes = bytes(key), valueBytes = bytes(value);
        set(
                store, number, keyBytes, place(key), key == null ? 0 : key.remaining(),
                valueBytes, place(value), value.remaining());
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

    private static int place(ByteBuffer buffer) {
        return buffer != null && buffer.hasArray() ? buffer.arrayOffset() + buffer.position() : 0;
    }
}
