import java.io.IOException;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;
import larder.LarderLongTable;

/**
 * One map of longs to longs, measured in a JVM of its own: `MapBench NAME ROWS SECONDS` prints a
 * line of a table. Every answer is checked.
 */
public final class MapBench {
    /** What is measured of a map. */
    private interface Subject {
        void put(long key, long value);

        long get(long key);

        void add(long key, long increment);

        /** The sum of the values of so many rows from a key on; -1 without an order. */
        long scan(long from, long to);
    }

    private static final class Larder implements Subject {
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
    }

    /** The table as the map that it is, with its boxes. */
    private static final class OfMap implements Subject {
        private final Map<Long, Long> map;

        OfMap(Map<Long, Long> map) {
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
            if (!(map instanceof java.util.NavigableMap<Long, Long> ordered)) {
                return -1;
            }
            long sum = 0;
            for (long value : ordered.subMap(from, true, to, true).values()) {
                sum += value;
            }
            return sum;
        }
    }

    private static Subject subject(String name) {
        return switch (name) {
            case "LarderLongTable" -> new Larder();
            case "LarderTable" -> new OfMap(LarderLongTable.builder().open());
            case "ConcurrentSkipListMap" -> new OfMap(new ConcurrentSkipListMap<>());
            case "HashMap" -> new OfMap(new HashMap<>());
            default -> throw new IllegalArgumentException("no map is called " + name);
        };
    }

    /** A permutation of the rows' numbers, without a list of them. */
    private static long key(long i, long rows) {
        return (i * 2_654_435_761L) % rows;
    }

    private static void check(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    private static long resident() throws IOException {
        Path statm = Path.of("/proc/self/statm");
        return Files.exists(statm) ? Long.parseLong(Files.readString(statm).split(" ")[1]) * 4096 >> 20 : -1;
    }

    private static long collecting() {
        return ManagementFactory.getGarbageCollectorMXBeans().stream()
                .mapToLong(GarbageCollectorMXBean::getCollectionTime)
                .sum();
    }

    public static void main(String[] args) throws IOException {
        String name = args[0];
        long rows = Long.parseLong(args[1]);
        long nanos = (long) (Double.parseDouble(args[2]) * 1e9);
        long resident = resident(), collected = collecting();
        Subject map = subject(name);
        long begin = System.nanoTime();
        for (long i = 0; i < rows; i++) {
            map.put(key(i, rows), i);
        }
        double fill = (double) (System.nanoTime() - begin) / rows;
        double get = each(nanos, i -> check(map.get(key(i % rows, rows)) == i % rows, "get"));
        double add = each(nanos, i -> map.add(key(i % rows, rows), 0));
        double scan = -1;
        if (map.scan(0, 0) >= 0) {
            long start = System.nanoTime(), met = 0;
            while (System.nanoTime() - start < nanos) {
                check(map.scan(0, rows - 1) == rows * (rows - 1) / 2, "scan");
                met += rows;
            }
            scan = (double) (System.nanoTime() - start) / met;
        }
        // Overwrites: what the longest of them took, the collector's pauses among it.
        long longest = 0, count = 0, start = System.nanoTime(), now = start;
        for (; now - start < nanos; count++) {
            map.put(key(count % rows, rows), count % rows);
            long then = System.nanoTime();
            longest = Math.max(longest, then - now);
            now = then;
        }
        double put = (double) (now - start) / count;
        System.gc();
        Runtime heap = Runtime.getRuntime();
        System.out.printf(
                "| %-21s | %8.0f | %8.0f | %8.0f | %8.0f | %8s | %10.2f | %8d | %8d | %8d |%n",
                name, fill, put, get, add, scan < 0 ? "-" : String.format("%.1f", scan),
                longest / 1e6, collecting() - collected, (heap.totalMemory() - heap.freeMemory()) >> 20,
                resident() - resident);
    }

    private interface Call {
        void of(long i);
    }

    /** Nanoseconds a call. */
    private static double each(long nanos, Call call) {
        long start = System.nanoTime(), i = 0;
        do {
            for (int n = 0; n < 1000; n++) {
                call.of(i++);
            }
        } while (System.nanoTime() - start < nanos);
        return (double) (System.nanoTime() - start) / i;
    }
}
