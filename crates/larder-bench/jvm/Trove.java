// Trove's open-addressing map.
// name: Trove
// jar: net.sf.trove4j:trove4j:3.0.3 3c8616203d61a12a7e3487e8b34f3c198c2b5ba9e90da0c7ea32d99cd4958012

import gnu.trove.map.hash.TLongLongHashMap;

public final class Trove implements LongMap {
    private final TLongLongHashMap map = new TLongLongHashMap();

    public void put(long key, long value) { map.put(key, value); }
    public long get(long key) { return map.get(key); }
    public boolean has(long key) { return map.containsKey(key); }
    public int size() { return map.size(); }
}
