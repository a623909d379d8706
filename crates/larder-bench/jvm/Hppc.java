// HPPC's open-addressing map.
// name: HPPC
// jar: com.carrotsearch:hppc:0.10.0 edc83b336476a2b06f7c17d09b17e98bb07678daf968c9825cc14275bdf20a26

import com.carrotsearch.hppc.LongLongHashMap;

public final class Hppc implements LongMap {
    private final LongLongHashMap map = new LongLongHashMap();

    public void put(long key, long value) { map.put(key, value); }
    public long get(long key) { return map.get(key); }
    public boolean has(long key) { return map.containsKey(key); }
    public int size() { return map.size(); }
}
