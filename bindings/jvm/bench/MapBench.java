import java.io.IOException;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * One map of longs to longs, measured in a JVM of its own: `MapBench CLASS ROWS SECONDS NAME`
 * prints a line of a table. Every answer is checked.
 */
public final class MapBench {
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
        return Files.exists(statm)
                ? Long.parseLong(Files.readString(statm).split(" ")[1]) * 4096 >> 20
                : -1;
    }

    private static long collecting() {
        return ManagementFactory.getGarbageCollectorMXBeans().stream()
                .mapToLong(GarbageCollectorMXBean::getCollectionTime)
                .sum();
    }

    public static void main(String[] args) throws Exception {
        String name = args[0], title = args[3];
        long rows = Long.parseLong(args[1]);
        long nanos = (long) (Double.parseDouble(args[2]) * 1e9);
        long resident = resident(), collected = collecting();
        Subject map = Subject.named(name);
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
                "| %-22s | %8.0f | %8.0f | %8.0f | %8.0f | %8s | %10.2f | %8d | %8d | %8d |%n",
                title, fill, put, get, add, scan < 0 ? "-" : String.format("%.1f", scan),
                longest / 1e6, collecting() - collected,
                (heap.totalMemory() - heap.freeMemory()) >> 20, resident() - resident);
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
