import java.util.SplittableRandom;
import java.util.concurrent.locks.LockSupport;

/**
 * Writes at a rate, and how late each was: `PaceBench CLASS ROWS RATE SECONDS` fills a map of longs
 * to longs, and then makes so many writes a second. One in four appends a key, the others add to
 * keys of a Zipf distribution. A write's time counts from when it was due, so a pause counts for
 * all that it held up.
 */
public final class PaceBench {
    /** Times in microseconds, in eight steps for each power of two. */
    private static final class Histogram {
        private final long[] counts = new long[8 * 64];
        private long total;
        private long max;

        void add(long nanos) {
            long micros = Math.max(nanos / 1000, 1);
            int power = 63 - Long.numberOfLeadingZeros(micros);
            int part = power < 3 ? 0 : (int) (micros >> power - 3) & 7;
            counts[8 * power + part]++;
            total++;
            max = Math.max(max, nanos);
        }

        /** The least time that so large a part is below. */
        double micros(double part) {
            long left = (long) Math.ceil(total * part);
            for (int i = 0; i < counts.length; i++) {
                left -= counts[i];
                if (left <= 0) {
                    int power = i / 8;
                    return power < 3 ? 1 << power : (double) (8 + i % 8 + 1) * (1L << power - 3);
                }
            }
            return max / 1e3;
        }
    }

    public static void main(String[] args) throws Exception {
        String name = args[0];
        long rows = Long.parseLong(args[1]), rate = Long.parseLong(args[2]);
        long writes = rate * Long.parseLong(args[3]);
        Subject map = Subject.named(name);
        long begin = System.nanoTime();
        for (long i = 0; i < rows; i++) {
            map.put(i, i);
        }
        double fill = (System.nanoTime() - begin) / 1e9;
        SplittableRandom random = new SplittableRandom(1);
        Histogram late = new Histogram();
        long appended = rows, start = System.nanoTime();
        for (long i = 0; i < writes; i++) {
            long due = start + i * 1_000_000_000L / rate;
            for (long ahead; (ahead = due - System.nanoTime()) > 0; ) {
                if (ahead > 200_000) {
                    LockSupport.parkNanos(ahead - 100_000);
                } else {
                    Thread.onSpinWait();
                }
            }
            if (i % 4 == 0) {
                map.put(appended, appended);
                appended++;
            } else {
                // A number whose logarithm is evenly distributed is of Zipf's distribution.
                map.add((long) Math.pow(rows, random.nextDouble()) - 1, 1);
            }
            late.add(System.nanoTime() - due);
        }
        double took = (System.nanoTime() - start) / 1e9;
        if (map.size() != appended) {
            throw new AssertionError("rows are missing: " + map.size() + " of " + appended);
        }
        System.out.printf(
                "%s: filled %d in %.1f s; %d writes in %.1f s; us late: median %.0f, 99 %% %.0f,"
                        + " 99.9 %% %.0f, 99.99 %% %.0f, most %.0f; heap %d MiB, resident %s%n",
                name, rows, fill, writes, took,
                late.micros(0.5), late.micros(0.99), late.micros(0.999), late.micros(0.9999),
                late.max / 1e3,
                (Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory()) >> 20,
                resident());
    }

    private static String resident() {
        try {
            java.nio.file.Path file = java.nio.file.Path.of("/proc/self/statm");
            String statm = java.nio.file.Files.readString(file);
            return (Long.parseLong(statm.split(" ")[1]) * 4096 >> 20) + " MiB";
        } catch (java.io.IOException e) {
            return "unknown";
        }
    }
}
