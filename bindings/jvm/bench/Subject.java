/** A map of longs to longs, as the benches use it. A class in `maps` is one. */
public interface Subject {
    void put(long key, long value);

    /** The value under a key, -1 where there is none. */
    long get(long key);

    void add(long key, long increment);

    /** The sum of the values from one key to another, both included; -1 without an order. */
    default long scan(long from, long to) {
        return -1;
    }

    long size();

    static Subject named(String name) throws ReflectiveOperationException {
        return (Subject) Class.forName(name).getDeclaredConstructor().newInstance();
    }
}
