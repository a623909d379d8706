// The steps of src/workload.rs on a map of the JVM: `java Bench CLASS ENTRIES`. Prints a line
// `step,figure` for each.

import java.nio.file.Files;
import java.nio.file.Path;

/** What a map of the JVM has to do. */
interface LongMap {
    void put(long key, long value);
    /** The value under a key that is there. */
    long get(long key);
    boolean has(long key);
    int size();
}

public final class Bench {
    static long randomKey(long i) {
        i = (i ^ (i >>> 30)) * 0xBF58476D1CE4E5B9L;
        i = (i ^ (i >>> 27)) * 0x94D049BB133111EBL;
        return i ^ (i >>> 31);
    }

    static long valueOf(long key) {
        return key * 0x9E3779B97F4A7C15L ^ 0x2545F4914F6CDD1DL;
    }

    /** Resident bytes of this process, garbage collected. */
    static long resident() throws Exception {
        System.gc();
        for (String line : Files.readAllLines(Path.of("/proc/self/status")))
            if (line.startsWith("VmRSS:")) return Long.parseLong(line.split("\\s+")[1]) * 1024;
        throw new IllegalStateException("/proc/self/status has no VmRSS");
    }

    /** The keys in another order: steps of a number that shares no divisor with n. */
    static long[] other(long[] keys) {
        long[] out = new long[keys.length];
        long step = (long) (keys.length * 0.618) | 1;
        while (gcd(step, keys.length) != 1) step += 2;
        for (int i = 0; i < out.length; i++) out[i] = keys[(int) (i * step % keys.length)];
        return out;
    }

    static long gcd(long a, long b) {
        return b == 0 ? a : gcd(b, a % b);
    }

    static void insert(LongMap map, long[] keys) {
        for (long key : keys) map.put(key, valueOf(key));
    }

    static long wrong(LongMap map, long[] keys) {
        long wrong = 0;
        for (long key : keys) wrong |= map.get(key) ^ valueOf(key);
        return wrong;
    }

    static long found(LongMap map, long[] keys) {
        long found = 0;
        for (long key : keys) if (map.has(key)) found++;
        return found;
    }

    static void must(boolean right, String what) {
        if (right) return;
        System.err.println(what);
        System.exit(1);
    }

    static void say(String step, double figure) {
        System.out.println(step + "," + figure);
    }

    static LongMap make(String name) throws Exception {
        return (LongMap) Class.forName(name).getDeclaredConstructor().newInstance();
    }

    public static void main(String[] arguments) throws Exception {
        String name = arguments[0];
        int n = Integer.parseInt(arguments[1]);
        // Until the compiler has seen enough: a smaller map of the same kind, which is then thrown
        // away.
        long[] few = new long[Math.min(n, 200_000)];
        for (int i = 0; i < few.length; i++) few[i] = randomKey(i | 1L << 50);
        for (int round = 0; round < 5; round++) {
            LongMap warm = make(name);
            insert(warm, few);
            must(wrong(warm, few) == 0 && found(warm, few) == few.length, "wrong answers");
        }
        long[] keys = new long[n], missing = new long[n];
        for (int i = 0; i < n; i++) {
            keys[i] = randomKey(i);
            missing[i] = randomKey(i | 1L << 40);
        }
        long[] visit = other(keys);
        LongMap map = make(name);
        map.put(keys[0], valueOf(keys[0]));
        long before = resident();
        long begin = System.nanoTime();
        insert(map, keys);
        say("insert", (double) (System.nanoTime() - begin) / n);
        long bytes = resident() - before;
        begin = System.nanoTime();
        long wrong = wrong(map, visit);
        say("hit", (double) (System.nanoTime() - begin) / n);
        must(wrong == 0 && map.size() == n, "wrong answers");
        begin = System.nanoTime();
        long found = found(map, missing);
        say("miss", (double) (System.nanoTime() - begin) / n);
        must(found == 0, "it finds keys that were not inserted");
        say("bytes", (double) Math.max(bytes, 0) / n);
    }
}
