import java.util.Map;
import java.util.NavigableMap;

/** A map with boxes. */
public class OfMap implements Subject {
    private final Map<Long, Long> map;

    public OfMap(Map<Long, Long> map) {
        this.map = map;
    }

    @Override
    public void put(long key, long value) {
        map.put(key, value);
    }

    @Override
    public long get(long key) {
        Long value = map.get(key);
        return value == null ? -1 : value;
    }

    @Override
    public void add(long key, long increment) {
        map.merge(key, increment, Long::sum);
    }

    @Override
    public long scan(long from, long to) {
        if (!(map instanceof NavigableMap<Long, Long> ordered)) {
            return -1;
        }
        long sum = 0;
        for (long value : ordered.subMap(from, true, to, true).values()) {
            sum += value;
        }
        return sum;
    }

    @Override
    public long size() {
        return map.size();
    }
}
