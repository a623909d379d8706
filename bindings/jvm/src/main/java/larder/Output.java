package larder;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;

/**
 * What a {@link Codec} writes a key or a value to: either one {@link #integer}, or any number of
 * bytes. Bytes of keys are ordered as unsigned ones, so numbers that keep their order are written
 * with the highest byte first, as all methods here do.
 */
public final class Output {
    private static final VarHandle LITTLE_INT = view(int[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle LITTLE_LONG = view(long[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle INT = view(int[].class, ByteOrder.BIG_ENDIAN);
    private static final VarHandle LONG = view(long[].class, ByteOrder.BIG_ENDIAN);
    static final byte NOTHING = 0;
    static final byte INTEGER = 1;
    static final byte BYTES = 2;
    /** A tag and a length stand before bytes. */
    private static final int HEAD = 5;

    private byte[] bytes = new byte[256];
    private int length;
    /** Where the item begins that a codec is writing. */
    private int item;

    Output() {}

    private static VarHandle view(Class<?> array, ByteOrder order) {
        return MethodHandles.byteArrayViewVarHandle(array, order);
    }

    /** Writes the number, and nothing else: it is an integer for match specifications, too. */
    public void integer(long n) {
        if (length != item + HEAD) {
            throw new IllegalStateException("a codec writes one integer or bytes, and not both");
        }
        room(Long.BYTES);
        bytes[item] = INTEGER;
        LITTLE_LONG.set(bytes, item + 1, n);
        length = item + 1 + Long.BYTES;
    }

    /** Writes a byte: the lowest of the number. */
    public void put(int b) {
        room(1);
        bytes[length++] = (byte) b;
    }

    /** Writes four bytes, the highest first. */
    public void putInt(int n) {
        room(Integer.BYTES);
        INT.set(bytes, length, n);
        length += Integer.BYTES;
    }

    /** Writes eight bytes, the highest first. */
    public void putLong(long n) {
        room(Long.BYTES);
        LONG.set(bytes, length, n);
        length += Long.BYTES;
    }

    /** Writes all bytes of an array. */
    public void put(byte[] source) {
        put(source, 0, source.length);
    }

    /** Writes a part of an array. */
    public void put(byte[] source, int from, int count) {
        room(count);
        System.arraycopy(source, from, bytes, length, count);
        length += count;
    }

    private void room(int more) {
        if (bytes[item] == INTEGER && length == item + 1 + Long.BYTES) {
            throw new IllegalStateException("a codec writes one integer or bytes, and not both");
        }
        if (more > bytes.length - length) {
            grow(more);
        }
    }

    private void grow(int more) {
        long wanted = (long) length + more;
        if (wanted > Integer.MAX_VALUE - 16) {
            throw new IllegalArgumentException("what is written is more than an array can hold");
        }
        long next = Math.max(wanted, Math.min(2L * bytes.length, Integer.MAX_VALUE - 16));
        bytes = Arrays.copyOf(bytes, (int) next);
    }

    // A request, of items and little-endian numbers.

    void clear() {
        length = 0;
    }

    byte[] bytes() {
        return bytes;
    }

    int length() {
        return length;
    }

    <T> void item(Codec<T> codec, T value) {
        item = length;
        plain(HEAD);
        bytes[item] = BYTES;
        length += HEAD;
        codec.write(value, this);
        if (bytes[item] == BYTES) {
            LITTLE_INT.set(bytes, item + 1, length - item - HEAD);
        }
    }

    /** Null is nothing. */
    <T> void maybe(Codec<T> codec, T value) {
        if (value == null) {
            flag(NOTHING);
        } else {
            item(codec, value);
        }
    }

    /** Items as they are in a reply. */
    void items(byte[] source) {
        items(source, 0, source.length);
    }

    void items(byte[] source, int from, int count) {
        plain(count);
        System.arraycopy(source, from, bytes, length, count);
        length += count;
    }

    /** Takes back what was written past this length. */
    void cut(int length) {
        this.length = length;
    }

    /** All that another has. */
    void append(Output other) {
        plain(other.length);
        System.arraycopy(other.bytes, 0, bytes, length, other.length);
        length += other.length;
    }

    void flag(int b) {
        plain(1);
        bytes[length++] = (byte) b;
    }

    void number(int n) {
        plain(Integer.BYTES);
        LITTLE_INT.set(bytes, length, n);
        length += Integer.BYTES;
    }

    void number(long n) {
        plain(Long.BYTES);
        LITTLE_LONG.set(bytes, length, n);
        length += Long.BYTES;
    }

    private void plain(int more) {
        if (more > bytes.length - length) {
            grow(more);
        }
    }
}
