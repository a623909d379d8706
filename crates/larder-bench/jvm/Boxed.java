// The JDK's HashMap, keys and values boxed.
// name: HashMap<Long, Long>

import java.util.HashMap;

public final class Boxed implements LongMap {
    private final HashMap<Long, Long> map = new HashMap<>();

    public void put(long key, long value) { map.put(key, value); }
    public long get(long key) { return map.get(key); }
    public boolean has(long key) { return map.containsKey(key); }
    public int size() { return map.size(); }
}
