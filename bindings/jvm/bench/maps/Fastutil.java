// name: fastutil, open hash

import it.unimi.dsi.fastutil.longs.Long2LongOpenHashMap;

/** For one thread. */
public final class Fastutil implements Subject {
    private final Long2LongOpenHashMap map = new Long2LongOpenHashMap();

    public Fastutil() {
        map.defaultReturnValue(-1);
    }

    @Override
    public void put(long key, long value) {
        map.put(key, value);
    }

    @Override
    public long get(long key) {
        return map.get(key);
    }

    @Override
    public void add(long key, long increment) {
        map.merge(key, increment, Long::sum);
    }

    @Override
    public long size() {
        return map.size();
    }
}
