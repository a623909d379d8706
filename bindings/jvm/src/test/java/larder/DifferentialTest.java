package larder;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NavigableSet;
import java.util.NoSuchElementException;
import java.util.Random;
import java.util.concurrent.ConcurrentNavigableMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.function.Function;
import org.junit.jupiter.api.Test;

/** Random calls of all methods, on tables and on views of views, beside ConcurrentSkipListMap. */
class DifferentialTest {
    private static final int STEPS = 12_000;
    private static final long SEED = Long.getLong("larder.seed", 20261121L);

    private static void compare(Codec<Long> values, Random random) {
        compareKeys(
                Codec.LONG,
                values,
                random,
                r -> (long) (r.nextInt(120) - 60) * (r.nextInt(3) == 0 ? 1L << 40 : 1));
    }

    @Test
    void longs() {
        compare(Codec.LONG, new Random(SEED));
    }

    @Test
    void ints() {
        compareKeys(Codec.INTEGER, Codec.LONG, new Random(SEED), r -> r.nextInt(100) - 50);
    }

    @Test
    void texts() {
        String[] parts = {
            "", "a", "b", "ab", "\u00e9", "\u20ac", "\ud83d\ude00", "\uffff", "\ud800", "\0"
        };
        compareKeys(Codec.STRING, Codec.LONG, new Random(SEED), r -> parts[r.nextInt(parts.length)]
                + parts[r.nextInt(parts.length)]);
    }

    @Test
    void doubles() {
        double[] some = {0.0, -0.0, 1, -1, 1e300, -1e300, Double.NaN, Double.MIN_VALUE,
            Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY};
        compareKeys(Codec.DOUBLE, Codec.LONG, new Random(SEED), r -> r.nextInt(4) == 0
                ? some[r.nextInt(some.length)]
                : (double) (r.nextInt(80) - 40) / 8);
    }

    @Test
    void bytes() {
        compareKeys(Codec.BYTES, Codec.LONG, new Random(SEED), r -> {
            byte[] key = new byte[r.nextInt(3) == 0 ? 100 + r.nextInt(3) : r.nextInt(3)];
            Arrays.fill(key, (byte) 0x80);
            for (int i = Math.max(0, key.length - 2); i < key.length; i++) {
                key[i] = (byte) (r.nextInt(5) * 60);
            }
            return key;
        });
    }

    private static <K> void compareKeys(
            Codec<K> codec, Codec<Long> values, Random random, Function<Random, K> keys) {
        try (LarderTable<K, Long> table = LarderTable.builder(codec, values).open()) {
            ConcurrentNavigableMap<K, Long> oracle =
                    new ConcurrentSkipListMap<>(codec.comparator());
            Pair<K> whole = new Pair<>(table, oracle, keys, random);
            Pair<K> pair = whole;
            for (int step = 0; step < STEPS; step++) {
                if (step % 40 == 0) {
                    pair = random.nextInt(3) == 0 ? whole : pair.narrower();
                }
                if (random.nextInt(60) == 0) {
                    pair = whole;
                }
                pair.step();
                if (step % 200 == 0) {
                    whole.all();
                    pair.all();
                }
            }
            whole.all();
        }
    }

    private static final class Pair<K> {
        final ConcurrentNavigableMap<K, Long> sut;
        final ConcurrentNavigableMap<K, Long> oracle;
        final Function<Random, K> keys;
        final Random random;

        Pair(
                ConcurrentNavigableMap<K, Long> sut,
                ConcurrentNavigableMap<K, Long> oracle,
                Function<Random, K> keys,
                Random random) {
            this.sut = sut;
            this.oracle = oracle;
            this.keys = keys;
            this.random = random;
        }

        /** A view of both, unless the bounds are none of theirs: then both have to say so. */
        Pair<K> narrower() {
            K from = keys.apply(random), to = keys.apply(random);
            boolean fromIn = random.nextBoolean(), toIn = random.nextBoolean();
            int which = random.nextInt(4);
            Function<ConcurrentNavigableMap<K, Long>, Object> view = map -> switch (which) {
                case 0 -> map.subMap(from, fromIn, to, toIn);
                case 1 -> map.headMap(to, toIn);
                case 2 -> map.tailMap(from, fromIn);
                default -> map.descendingMap();
            };
            Object a = result(sut, view), b = result(oracle, view);
            assertEquals(
                    b instanceof Map,
                    a instanceof Map,
                    () -> from + " " + to + " of " + b + " is " + a);
            if (!(a instanceof ConcurrentNavigableMap<?, ?>)) {
                assertEquals(b, a);
                return this;
            }
            return new Pair<>(cast(a), cast(b), keys, random);
        }

        @SuppressWarnings("unchecked")
        private static <K> ConcurrentNavigableMap<K, Long> cast(Object map) {
            return (ConcurrentNavigableMap<K, Long>) map;
        }

        void step() {
            K key = keys.apply(random);
            Long value = (long) random.nextInt(8), other = (long) random.nextInt(8);
            int which = random.nextInt(31);
            if (which == 30 && random.nextInt(30) != 0) {
                which = 0;
            }
            int method = which;
            same(map -> switch (method) {
                case 0, 1, 2, 3 -> map.put(key, value);
                case 4 -> map.putIfAbsent(key, value);
                case 5 -> map.get(key);
                case 6 -> map.getOrDefault(key, value);
                case 7 -> map.containsKey(key);
                case 8, 9 -> map.remove(key);
                case 10 -> map.remove(key, value);
                case 11 -> map.replace(key, value);
                case 12 -> map.replace(key, value, other);
                case 13 -> map.compute(
                        key, (k, v) -> v == null ? value : v > 4 ? null : Long.valueOf(v + 1));
                case 14 -> map.computeIfAbsent(key, k -> value);
                case 15 -> map.computeIfPresent(key, (k, v) -> v > 3 ? null : value);
                case 16 -> map.merge(key, value, (a, b) -> a + b > 9 ? null : Long.valueOf(a + b));
                case 17 -> map.lowerEntry(key);
                case 18 -> map.floorKey(key);
                case 19 -> map.ceilingEntry(key);
                case 20 -> map.higherKey(key);
                case 21 -> map.firstEntry();
                case 22 -> map.lastKey();
                case 23 -> map.pollFirstEntry();
                case 24 -> map.pollLastEntry();
                case 25 -> map.size() + " " + map.isEmpty();
                case 26 -> map.containsValue(value);
                case 27 -> fromKeys(map.navigableKeySet(), key);
                case 28 -> removedByIterator(map, value);
                case 29 -> map.entrySet().remove(Map.entry(key, value));
                default -> {
                    map.clear();
                    yield null;
                }
            });
        }

        private Object fromKeys(NavigableSet<K> set, K key) {
            List<Object> found = new ArrayList<>();
            found.add(normal(set.floor(key)));
            found.add(normal(set.higher(key)));
            found.add(set.contains(key));
            found.add(list(set.tailSet(key)));
            found.add(list(set.headSet(key, true).descendingSet()));
            return found;
        }

        private Object removedByIterator(ConcurrentNavigableMap<K, Long> map, Long value) {
            int removed = 0;
            Iterator<Map.Entry<K, Long>> rows = map.entrySet().iterator();
            while (rows.hasNext()) {
                if (rows.next().getValue().equals(value) && removed < 3) {
                    rows.remove();
                    removed++;
                }
            }
            return removed;
        }

        private void same(Function<ConcurrentNavigableMap<K, Long>, Object> call) {
            assertEquals(result(oracle, call), result(sut, call));
        }

        private Object result(
                ConcurrentNavigableMap<K, Long> map,
                Function<ConcurrentNavigableMap<K, Long>, Object> call) {
            try {
                return normal(call.apply(map));
            } catch (IllegalArgumentException | NoSuchElementException e) {
                return e.getClass();
            }
        }

        /** Something that equals what is the same: arrays don't. */
        private Object normal(Object found) {
            if (found instanceof byte[] bytes) {
                return Arrays.toString(bytes);
            }
            if (found instanceof Map.Entry<?, ?> row) {
                return List.of(normal(row.getKey()), row.getValue());
            }
            return found;
        }

        private List<Object> list(Iterable<K> keys) {
            List<Object> all = new ArrayList<>();
            keys.forEach(key -> all.add(normal(key)));
            return all;
        }

        void all() {
            assertEquals(rows(oracle), rows(sut));
            assertEquals(rows(oracle.descendingMap()), rows(sut.descendingMap()));
            assertEquals(new ArrayList<>(oracle.values()), new ArrayList<>(sut.values()));
            assertEquals(list(oracle.descendingKeySet()), list(sut.descendingKeySet()));
            assertEquals(
                    oracle.values().stream().mapToLong(n -> n).sum(),
                    sut.values().stream().mapToLong(n -> n).sum());
            Comparator<? super K> order = sut.comparator();
            assertEquals(oracle.comparator() == null, order == null);
        }

        private List<Object> rows(ConcurrentNavigableMap<K, Long> map) {
            List<Object> all = new ArrayList<>();
            map.entrySet().forEach(row -> all.add(normal(row)));
            return all;
        }
    }

    @Test
    void maps_are_equal_to_maps() {
        try (LarderTable<String, Long> table =
                LarderTable.builder(Codec.STRING, Codec.LONG).open()) {
            Map<String, Long> other = Map.of("pear", 3L, "plum", 20L, "quince", 1L);
            table.putAll(other);
            assertEquals(other, table);
            assertEquals(table, other);
            assertEquals(other.hashCode(), table.hashCode());
            assertEquals(other.entrySet(), table.entrySet());
            assertEquals(table.entrySet(), other.entrySet());
            assertEquals(other.entrySet().hashCode(), table.entrySet().hashCode());
            assertEquals("{pear=3, plum=20, quince=1}", table.toString());
            assertArrayEquals(new Object[] {3L, 20L, 1L}, table.values().toArray());
        }
    }

    @Test
    void large_values_go_page_by_page() {
        try (LarderLongBytesTable table = LarderLongBytesTable.builder().open()) {
            for (long i = 0; i < 300; i++) {
                byte[] value = new byte[i % 50 == 7 ? 300_000 : 3_000];
                value[0] = (byte) i;
                table.set(i, value);
            }
            long next = 0;
            for (Map.Entry<Long, byte[]> row : table.entrySet()) {
                assertEquals(next, row.getKey());
                assertEquals((byte) next, row.getValue()[0]);
                assertEquals(next % 50 == 7 ? 300_000 : 3_000, row.getValue().length);
                next++;
            }
            assertEquals(300, next);
            assertTrue(table.memory() > 300 * 10);
        }
    }
}
