package larder;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

class LongTableTest {
    private static final long[] EDGES = {
        Long.MIN_VALUE, Long.MIN_VALUE + 1, -1, 0, 1, 47, 48, 255, 256, 1L << 62,
        Long.MAX_VALUE - 1, Long.MAX_VALUE
    };

    @Test
    void random_calls_beside_a_map() {
        Random random = new Random(7);
        TreeMap<Long, Long> map = new TreeMap<>();
        try (LarderLongTable table = LarderLongTable.builder(-1).open()) {
            for (int i = 0; i < 100_000; i++) {
                long key =
                        random.nextInt(8) == 0
                                ? EDGES[random.nextInt(EDGES.length)]
                                : random.nextInt(500);
                long value = random.nextInt(4) == 0 ? random.nextLong() >>> 1 : random.nextInt(5);
                switch (random.nextInt(8)) {
                    case 0, 1 -> assertEquals(or(map.put(key, value)), table.put(key, value));
                    case 2 -> assertEquals(or(map.get(key)), table.get(key));
                    case 3 -> assertEquals(map.getOrDefault(key, 5L), table.get(key, 5L));
                    case 4 -> assertEquals(or(map.remove(key)), table.remove(key));
                    case 5 ->
                            assertEquals(
                                    map.merge(key, value, Long::sum), table.addAndGet(key, value));
                    case 6 ->
                            assertEquals(
                                    or(map.putIfAbsent(key, value)), table.putIfAbsent(key, value));
                    default -> {
                        long expected = random.nextInt(5);
                        assertEquals(
                                map.replace(key, expected, value),
                                table.compareAndSet(key, expected, value));
                        assertEquals(map.containsKey(key), table.containsKey(key));
                        table.set(key, value);
                        map.put(key, value);
                    }
                }
            }
            assertEquals(map, table);
            List<Long> met = new ArrayList<>();
            table.scan(Long.MIN_VALUE, Long.MAX_VALUE, (key, value) -> {
                met.add(key);
                assertEquals(map.get(key), value);
            });
            assertEquals(new ArrayList<>(map.keySet()), met);
            met.clear();
            table.scan(100, 300, (key, value) -> met.add(key));
            assertEquals(new ArrayList<>(map.subMap(100L, true, 300L, true).keySet()), met);
            table.scan(300, 100, (key, value) -> met.add(key));
            assertEquals(map.subMap(100L, true, 300L, true).size(), met.size());
        }
    }

    private static long or(Long value) {
        return value == null ? -1 : value;
    }

    @Test
    void sums_wrap() {
        try (LarderLongTable table = LarderLongTable.builder().open()) {
            assertEquals(5, table.addAndGet(1, 5));
            table.set(1, Long.MAX_VALUE);
            assertEquals(Long.MIN_VALUE, table.addAndGet(1, 1));
            assertEquals(Long.MIN_VALUE, table.get(1));
        }
    }

    @Test
    void keys_of_all_sizes_are_in_order() {
        try (LarderLongTable table = LarderLongTable.builder().open()) {
            for (long key : EDGES) {
                table.set(key, ~key);
            }
            List<Long> keys = new ArrayList<>(table.keySet());
            List<Long> sorted = new ArrayList<>();
            for (long key : EDGES) {
                sorted.add(key);
                assertEquals(~key, table.get(key));
                assertTrue(table.containsKey(key));
            }
            assertEquals(sorted, keys);
            assertFalse(table.containsKey(49));
            // Numbers that stand for no row within the library are values as all others.
            long one = 0x9E3779B97F4A7C15L;
            table.set(1, one);
            assertEquals(one, table.get((Object) 1L));
            table.set(1, one + 1);
            assertEquals(one + 1, table.get((Object) 1L));
            assertEquals(null, table.get((Object) 2L));
        }
    }

    @Test
    void a_row_is_found_whatever_it_changes_to() throws InterruptedException {
        long one = 0x9E3779B97F4A7C15L;
        try (LarderLongTable table = LarderLongTable.builder().open()) {
            table.set(1, one);
            Thread writer =
                    new Thread(
                            () -> {
                                for (int i = 0; i < 200_000; i++) {
                                    table.set(1, one + i % 2);
                                }
                            });
            writer.start();
            while (writer.isAlive()) {
                Long value = table.get((Object) 1L);
                assertTrue(value != null && (value == one || value == one + 1), "" + value);
            }
            writer.join();
        }
    }

    @Test
    void a_table_of_texts_has_no_counters() {
        try (LarderTable<String, String> table =
                LarderTable.builder(Codec.STRING, Codec.STRING).open()) {
            table.put("a", "b");
            String text =
                    assertThrows(LarderException.class, () -> table.addAndGet("a", 1)).getMessage();
            assertTrue(text.contains("bytes"), text);
            // Nor does one begin where there is no row: it could not be read.
            Operations list = new Operations();
            assertThrows(LarderException.class, () -> table.addAndGet("c", 1));
            assertThrows(LarderException.class, () -> list.add(table, "c", 1));
            assertTrue(list.commit().isEmpty());
            assertEquals(Map.of("a", "b"), table);
            assertThrows(NullPointerException.class, () -> table.put(null, "b"));
            assertThrows(NullPointerException.class, () -> table.put("a", null));
            assertThrows(ClassCastException.class, () -> table.get(7));
        }
    }

    @Test
    void ranks() {
        try (LarderLongTable table = LarderLongTable.builder().open()) {
            for (long i = 1; i <= 1000; i++) {
                table.set(i * 10, i);
            }
            assertEquals(70, table.rank(700L).getAsLong());
            assertTrue(table.rank(701L).isEmpty());
            assertEquals(10_000, table.nth(-1).getKey());
            assertEquals(5, table.nth(5).getValue());
            assertEquals(null, table.nth(1001));
            assertEquals(900, table.tailMap(1_001L).size());
        }
    }
}
