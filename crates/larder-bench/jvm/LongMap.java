// What a map of the JVM has to do for the bench.

public interface LongMap {
    void put(long key, long value);

    /** The value under a key that is there. */
    long get(long key);

    boolean has(long key);

    int size();
}
