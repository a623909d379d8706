// fastutil's open-addressing map.
// name: fastutil
// jar: it.unimi.dsi:fastutil:8.5.15 cffeb6673bdf1e6e4377d684df2f55ac359cf5cf6df613e05e62deeea500936a

import it.unimi.dsi.fastutil.longs.Long2LongOpenHashMap;

public final class Fastutil implements LongMap {
    private final Long2LongOpenHashMap map = new Long2LongOpenHashMap();

    public void put(long key, long value) { map.put(key, value); }
    public long get(long key) { return map.get(key); }
    public boolean has(long key) { return map.containsKey(key); }
    public int size() { return map.size(); }
}
