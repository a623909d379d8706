// name: LarderLongTable

import larder.LarderLongTable;

public final class LarderLongs implements Subject {
    private final LarderLongTable table = LarderLongTable.builder(-1).open();

    @Override
    public void put(long key, long value) {
        table.set(key, value);
    }

    @Override
    public long get(long key) {
        return table.get(key);
    }

    @Override
    public void add(long key, long increment) {
        table.addAndGet(key, increment);
    }

    @Override
    public long scan(long from, long to) {
        long[] sum = {0};
        table.scan(from, to, (key, value) -> sum[0] += value);
        return sum[0];
    }

    @Override
    public long size() {
        return table.mappingCount();
    }
}
