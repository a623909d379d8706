package larder;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * The native methods. A table is a number, and so is all else that is open. A method that gets the
 * number of what is closed throws an IllegalStateException, whatever other threads do then.
 */
final class Native {
    static {
        NativeLibrary.load();
        NativeLibrary.check(libraryVersion());
        prepare();
    }

    private Native() {}

    /** The version of the library. One that is older than this method has another version. */
    private static String libraryVersion() {
        try {
            return new String(version(), StandardCharsets.UTF_8);
        } catch (UnsatisfiedLinkError e) {
            return "unknown (an older one)";
        }
    }

    private static native byte[] version();

    /** Finds classes that the library needs where there is no memory to find them. */
    private static native void prepare();

    /** A time or a limit below 0 is none. */
    static native long open(
            byte[] name,
            long ttl,
            long idle,
            long maxSize,
            long maxMemory,
            int evict,
            boolean bounded,
            boolean compressed);

    /** Whether it was open. Waits for the calls that use it. */
    static native boolean close(long id);

    static native long snapshot(long id);

    /** How many tables, snapshots, views, transactions and feeds are open in the process. */
    static native long handles();

    static native long size(long id);

    static native long memory(long id);

    static native long clear(long id);

    // Keys and values that are longs.

    static native long getLong(long id, long key, long absent);

    static native boolean hasLong(long id, long key);

    static native void setLong(long id, long key, long value);

    static native long putLong(long id, long key, long value, long absent);

    static native long putNewLong(long id, long key, long value, long absent);

    static native long addLong(long id, long key, long increment);

    static native long removeLong(long id, long key, long absent);

    static native boolean swapLong(long id, long key, long expected, long value);

    // Bytes in arrays and direct buffers. The key is `number` where `key` is null. `get` gives the
    // value's length, -1 for no row; where there is less room, nothing is copied.

    static native int getBytes(
            long id, long number, byte[] key, int at, int length,
            byte[] into, int intoAt, int room);

    static native void putBytes(
            long id, long number, byte[] key, int at, int length,
            byte[] value, int valueAt, int valueLength);

    static native boolean deleteBytes(long id, long number, byte[] key, int at, int length);

    static native int getDirect(
            long id, long number, ByteBuffer key, int at, int length,
            ByteBuffer into, int intoAt, int room);

    static native void putDirect(
            long id, long number, ByteBuffer key, int at, int length,
            ByteBuffer value, int valueAt, int valueLength);

    // Rows of any kind: a request, of which `length` bytes count, and a reply in the array that is
    // offered, or in a new one if it has no room; null for none.

    static native byte[] get(long id, byte[] request, int length, byte[] offered);

    static native byte[] exchange(long id, byte[] request, int length, byte[] offered);

    static native byte[] putNew(long id, byte[] request, int length, byte[] offered);

    static native byte[] remove(long id, byte[] request, int length, byte[] offered);

    static native byte[] page(long id, byte[] request, int length, byte[] offered);

    static native byte[] nth(long id, byte[] request, int length, byte[] offered);

    static native byte[] select(long id, byte[] request, int length, byte[] offered);

    static native boolean has(long id, byte[] request, int length);

    static native boolean put(long id, byte[] request, int length);

    static native boolean putAll(long id, byte[] request, int length);

    static native boolean swap(long id, byte[] request, int length);

    static native long add(long id, byte[] request, int length);

    static native boolean putFor(long id, byte[] request, int length);

    static native boolean expire(long id, byte[] request, int length);

    static native long timeLeft(long id, byte[] request, int length);

    static native long count(long id, byte[] request, int length);

    static native long rank(long id, byte[] request, int length);

    static native long selectCount(long id, byte[] request, int length);

    static native long selectDelete(long id, byte[] request, int length);

    // Transactions.

    /** The numbers of the views, and that of the transaction after them, go to the array. */
    static native void begin(long[] tables, long[] numbers);

    /** Whether it took effect. If not, the numbers of new views go to the array. */
    static native boolean commit(long id, long[] views);

    /** 0 if all took effect; else the number of the first whose condition didn't hold. */
    static native long commitOperations(byte[] request, int length);

    // Feeds.

    /** The number of the feed, and that of the snapshot or 0, go to the array. */
    static native void subscribe(long id, byte[] request, int length, long[] numbers);

    /**
     * Copies the next changes to the array, and returns their length. If they are longer than the
     * array, nothing is copied, and the next call offers them again. A commit that is longer than
     * {@code longest} is delivered as an overflow.
     */
    static native int changes(long id, byte[] into, int longest);

    /** Waits until a feed that had no changes may have some. Returns its token. */
    static native long nextSignal();

    // Files.

    static native void save(long id, byte[] path) throws IOException;

    static native long load(byte[] path) throws IOException;
}
