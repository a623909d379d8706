package larder;

import java.util.Comparator;
import java.util.Objects;

/**
 * How keys and values of a type are stored. A value is stored as one integer of 64 bits or as
 * bytes. Nothing is ever serialized in another way.
 *
 * <p>A codec of keys keeps their order: integers are ordered as numbers, bytes as unsigned bytes
 * from the first on, and all integers come before all bytes. The order is that of {@link
 * #comparator}, and two keys are one if they are stored alike.
 *
 * <p>A codec is used by any number of threads at once. What it throws goes to the caller of the
 * table's method. If that is {@link #write}, nothing is changed. If it is {@link #read}, of a value
 * that a method like {@code put} or {@code remove} gives back, the row is written or removed
 * already. It may use tables.
 */
public interface Codec<T> {
    /** Numbers, as integers. */
    Codec<Long> LONG = new Codecs.Longs();
    /** Numbers, as integers. */
    Codec<Integer> INTEGER = new Codecs.Integers();
    /**
     * Texts, in the order of {@link String#compareTo}. They are stored in UTF-8, but for
     * characters beyond the first 65,536, which are stored as two of three bytes each: so the order
     * is kept, and any string comes back, with unpaired surrogates, too.
     */
    Codec<String> STRING = new Codecs.Strings();
    /** Numbers, in the order of {@link Double#compareTo}. */
    Codec<Double> DOUBLE = new Codecs.Doubles();
    /** Bytes, in the order of {@link java.util.Arrays#compareUnsigned(byte[], byte[])}. */
    Codec<byte[]> BYTES = new Codecs.Bytes();

    /** Writes a value: one integer, or bytes. */
    void write(T value, Output out);

    /** Reads what {@link #write} has written. */
    T read(Input in);

    /** The order of keys; null for that of {@link Comparable}. */
    default Comparator<? super T> comparator() {
        return null;
    }

    /** Whether two values are one for {@code replace}, {@code remove} and {@code containsValue}. */
    default boolean same(T a, T b) {
        return Objects.equals(a, b);
    }
}
