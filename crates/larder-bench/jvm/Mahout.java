// Mahout's open-addressing map.
// name: Mahout collections
// jar: org.apache.mahout:mahout-math:0.13.0 ff0812af996d64a3f2cf3214001e975822d10ce538945c3f9f3cc34c9156dd82

import org.apache.mahout.math.map.OpenLongLongHashMap;

public final class Mahout implements LongMap {
    private final OpenLongLongHashMap map = new OpenLongLongHashMap();

    public void put(long key, long value) { map.put(key, value); }
    public long get(long key) { return map.get(key); }
    public boolean has(long key) { return map.containsKey(key); }
    public int size() { return map.size(); }
}
