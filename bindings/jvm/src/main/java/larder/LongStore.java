package larder;

import java.lang.ref.Reference;

/** A table of longs to longs, or a transaction's view of one, with calls that make no object. */
final class LongStore extends Store<Long, Long> {
    private static final long ONE = 0x9E3779B97F4A7C15L;
    private static final long OTHER = ONE + 1;

    /** What stands for no row where the caller names nothing else. */
    final long absent;

    <X extends Exception> LongStore(Owned.Opening<X> opening, long absent) throws X {
        super(opening, Codec.LONG, Codec.LONG);
        this.absent = absent;
    }

    private LongStore(LongStore table, long view) {
        super(table, view);
        this.absent = table.absent;
    }

    @Override
    LongStore view(long view) {
        return new LongStore(this, view);
    }

    long get(long key, long otherwise) {
        return kept(Native.getLong(id, key, otherwise));
    }

    /** As of any store, but without the bytes of a request. */
    @Override
    Long get(Long key) {
        // A value equals at most one of the two numbers, so whichever call gives another one has
        // found a row. The rows that hold them, and missing ones, are read once more as bytes.
        long value = get(key, ONE);
        if (value == ONE) {
            value = get(key, OTHER);
            if (value == OTHER) {
                return super.get(key);
            }
        }
        return value;
    }

    boolean has(long key) {
        return kept(Native.hasLong(id, key));
    }

    long put(long key, long value) {
        return kept(Native.putLong(id, key, value, absent));
    }

    void set(long key, long value) {
        Native.setLong(id, key, value);
        Reference.reachabilityFence(this);
    }

    long putNew(long key, long value) {
        return kept(Native.putNewLong(id, key, value, absent));
    }

    long add(long key, long increment) {
        return kept(Native.addLong(id, key, increment));
    }

    boolean swap(long key, long expected, long value) {
        return kept(Native.swapLong(id, key, expected, value));
    }

    long remove(long key) {
        return kept(Native.removeLong(id, key, absent));
    }

    void scan(long from, long to, LarderLongTable.Rows rows) {
        long[] next = {from};
        boolean isLast = next[0] > to;
        checkOpen();
        while (!isLast) {
            Bounds<Long> rest = new Bounds<>(next[0], true, to, true);
            isLast = page(rest, false, 256, (reply, count) -> {
                for (int i = 0; i < count; i++) {
                    next[0] = reply.integerItem();
                    rows.accept(next[0], reply.integerItem());
                }
            }) || next[0] == Long.MAX_VALUE;
            next[0]++;
        }
    }
}
