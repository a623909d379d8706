package larder;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;

/** What a {@link Codec} reads a key or a value from: what was written to {@link Output}. */
public final class Input {
    private static final VarHandle LITTLE_INT = view(int[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle LITTLE_LONG = view(long[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle INT = view(int[].class, ByteOrder.BIG_ENDIAN);
    private static final VarHandle LONG = view(long[].class, ByteOrder.BIG_ENDIAN);

    private byte[] bytes;
    private int at;
    /** Where the item ends that is being read. */
    private int end;
    private boolean isInteger;
    /** Whether bytes were to be read where an integer is. */
    private boolean hasRefusedBytes;

    Input() {}

    private static VarHandle view(Class<?> array, ByteOrder order) {
        return MethodHandles.byteArrayViewVarHandle(array, order);
    }

    /** The number that was written by {@link Output#integer}. */
    public long integer() {
        if (!isInteger) {
            throw new LarderException("what is stored is bytes, and the codec reads an integer");
        }
        return (long) LITTLE_LONG.get(bytes, end - Long.BYTES);
    }

    /** How many bytes are left. */
    public int remaining() {
        if (isInteger) {
            hasRefusedBytes = true;
            throw new LarderException("what is stored is an integer, and the codec reads bytes");
        }
        return end - at;
    }

    /** The next byte. A {@link LarderException} if there are no more, as for the others. */
    public byte get() {
        need(1);
        return bytes[at++];
    }

    /** Four bytes, the highest first. */
    public int getInt() {
        need(Integer.BYTES);
        at += Integer.BYTES;
        return (int) INT.get(bytes, at - Integer.BYTES);
    }

    /** Eight bytes, the highest first. */
    public long getLong() {
        need(Long.BYTES);
        at += Long.BYTES;
        return (long) LONG.get(bytes, at - Long.BYTES);
    }

    /** So many bytes. */
    public byte[] get(int count) {
        need(count);
        at += count;
        return Arrays.copyOfRange(bytes, at - count, at);
    }

    private void need(int count) {
        if (count < 0 || remaining() < count) {
            throw new LarderException("the codec reads more bytes than are stored");
        }
    }

    // A reply, of items and little-endian numbers.

    Input of(byte[] reply) {
        bytes = reply;
        at = 0;
        return this;
    }

    int number() {
        at += Integer.BYTES;
        return (int) LITTLE_INT.get(bytes, at - Integer.BYTES);
    }

    long longNumber() {
        at += Long.BYTES;
        return (long) LITTLE_LONG.get(bytes, at - Long.BYTES);
    }

    int flag() {
        return bytes[at++];
    }

    void goTo(int position) {
        at = position;
    }

    /** How many bytes of the reply were read. */
    int position() {
        return at;
    }

    /** Appends what was read from a place on to a list of items. */
    void copyTo(Output items, int from) {
        items.items(bytes, from, at - from);
    }

    /** An item that is an integer. */
    static Input ofInteger() {
        return new Input().of(new byte[] {Output.INTEGER, 0, 0, 0, 0, 0, 0, 0, 0});
    }

    /** Whether a codec fails since it reads bytes, and the item is an integer. */
    boolean isReadAsBytes(Codec<?> codec) {
        try {
            item(codec);
            return false;
        } catch (RuntimeException e) {
            // Another codec may have no value for this number.
            return hasRefusedBytes;
        }
    }

    /** A copy of what was read. */
    byte[] soFar() {
        return Arrays.copyOf(bytes, at);
    }

    <T> T item(Codec<T> codec) {
        skip(false);
        T value = codec.read(this);
        at = end;
        return value;
    }

    /** Goes to an item, or past it. */
    void skip(boolean past) {
        isInteger = bytes[at++] == Output.INTEGER;
        int length = isInteger ? Long.BYTES : number();
        end = at + length;
        if (past) {
            at = end;
        }
    }

    /** An item that is an integer. */
    long integerItem() {
        skip(false);
        at = end;
        return integer();
    }
}
