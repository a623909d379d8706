package larder;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Spliterator;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Snapshots, times, limits, match specifications, codecs of one's own. */
class TableTest {
    /** A type that has no equals. */
    private static final class Opaque {
        final long x;

        Opaque(long x) {
            this.x = x;
        }
    }

    private static final Codec<Opaque> OPAQUE = new Codec<>() {
        @Override
        public void write(Opaque value, Output out) {
            out.putLong(value.x);
        }

        @Override
        public Opaque read(Input in) {
            return new Opaque(in.getLong());
        }
    };

    /** Each time it writes a value, it writes it otherwise. */
    private static final Codec<Long> OTHERWISE = new Codec<>() {
        private final AtomicLong written = new AtomicLong();

        @Override
        public void write(Long value, Output out) {
            out.putLong(value);
            out.putLong(written.incrementAndGet());
        }

        @Override
        public Long read(Input in) {
            return in.getLong();
        }
    };

    @Test
    @Timeout(20)
    void values_without_equals_are_computed() {
        try (LarderTable<Long, Opaque> table = LarderTable.builder(Codec.LONG, OPAQUE).open()) {
            table.put(1L, new Opaque(1));
            assertEquals(3, table.merge(1L, new Opaque(2), (a, b) -> new Opaque(a.x + b.x)).x);
            assertEquals(4, table.compute(1L, (k, p) -> new Opaque(p.x + k)).x);
            assertEquals(5, table.computeIfPresent(1L, (k, p) -> new Opaque(p.x + k)).x);
            table.replaceAll((k, p) -> new Opaque(2 * p.x));
            assertEquals(10, table.get(1L).x);
            assertNull(table.tailMap(2L).computeIfPresent(1L, (k, p) -> p));
            assertThrows(
                    IllegalArgumentException.class,
                    () -> table.tailMap(2L).compute(1L, (k, p) -> new Opaque(0)));
            assertThrows(NullPointerException.class, () -> table.replaceAll((k, p) -> null));
            assertNull(table.compute(1L, (k, p) -> null));
            assertTrue(table.isEmpty());
        }
    }

    @Test
    @Timeout(20)
    void values_that_are_written_in_several_ways_are_exchanged() {
        try (LarderTable<Long, Long> table = LarderTable.builder(Codec.LONG, OTHERWISE).open()) {
            table.put(1L, 1L);
            assertEquals(1L, table.replace(1L, 2L));
            assertTrue(table.replace(1L, 2L, 3L));
            assertFalse(table.replace(1L, 2L, 4L));
            assertEquals(5L, table.merge(1L, 2L, Long::sum));
            assertTrue(table.remove(1L, 5L));
            assertTrue(table.isEmpty());
        }
    }

    /** Pages are short if their rows are long: the heap has no room for 256 of them. */
    @Test
    void long_rows_after_short_ones_are_iterated() {
        try (LarderLongBytesTable table = LarderLongBytesTable.builder().open()) {
            for (long key = 0; key < 900; key++) {
                table.set(key, new byte[key < 600 ? 8 : 2 << 20]);
            }
            long[] seen = {0, 0};
            table.forEach((key, value) -> {
                seen[0]++;
                seen[1] += value.length;
            });
            assertEquals(900, seen[0]);
            assertEquals(600 * 8 + 300 * (2L << 20), seen[1]);
            table.tailMap(1L).clear();
            assertEquals(1, table.size());
        }
    }

    /** Whoever changes a row that a filter has picked keeps it, if the filter doesn't pick that. */
    @Test
    void rows_that_have_changed_since_they_were_tested_stay() {
        try (LarderLongTable table = LarderLongTable.builder().open()) {
            for (long key = 0; key < 100; key++) {
                table.set(key, key % 2);
            }
            // Somebody adds to the row 4 once it was tested.
            assertTrue(table.values().removeIf(value -> {
                table.compareAndSet(4, 0, 7);
                return value == 0;
            }));
            assertEquals(51, table.size());
            assertEquals(7, table.get(4));
            table.set(4, 0);
            assertFalse(table.entrySet().removeIf(row -> {
                boolean goes = row.getValue() == 0;
                table.set(4, 7);
                return goes;
            }));
            assertEquals(7, table.get(4));
            assertTrue(table.values().removeAll(List.of(1L)));
            assertEquals(Map.of(4L, 7L), table);
            assertFalse(table.entrySet().retainAll(Map.of(4L, 7L).entrySet()));
            assertTrue(table.entrySet().retainAll(Map.of(4L, 1L).entrySet()));
            assertTrue(table.isEmpty());
        }
        try (LarderBytesTable table = LarderBytesTable.builder().open()) {
            byte[] key = {1};
            table.put(key, new byte[] {2});
            assertTrue(table.values().contains(new byte[] {2}));
            assertFalse(table.values().remove(new byte[] {3}));
            assertTrue(table.values().remove(new byte[] {2}));
            assertTrue(table.isEmpty());
            // However many there are.
            table.put(key, key);
            assertTrue(table.keySet().removeAll(List.of(new byte[] {1}, new byte[] {2})));
            table.put(key, key);
            assertTrue(table.entrySet().removeAll(List.of(Map.entry(key, new byte[] {1}))));
            assertTrue(table.isEmpty());
        }
    }

    /** A codec's exception leaves an iterator where it was. */
    @Test
    void iterators_go_on_after_an_exception() {
        long[] fails = {-1};
        Codec<Long> failing = new Codec<>() {
            @Override
            public void write(Long value, Output out) {
                out.integer(value);
            }

            @Override
            public Long read(Input in) {
                long value = in.integer();
                if (value == fails[0]) {
                    fails[0] = -1;
                    throw new IllegalStateException("once");
                }
                return value;
            }
        };
        try (LarderTable<Long, Long> table = LarderTable.builder(Codec.LONG, failing).open()) {
            List<Long> keys = LongStream.range(0, 100).boxed().collect(Collectors.toList());
            keys.forEach(key -> table.set(key, key));
            for (long at : new long[] {8, 9, 15, 23, 24, 60}) {
                List<Long> seen = new ArrayList<>();
                Iterator<Long> iterator = table.keySet().iterator();
                fails[0] = at;
                while (seen.size() < 300) {
                    try {
                        seen.add(iterator.next());
                    } catch (IllegalStateException e) {
                        assertEquals("once", e.getMessage());
                    } catch (NoSuchElementException e) {
                        break;
                    }
                }
                assertEquals(keys, seen);
            }
        }
    }

    /** Streams of keys know their order, and don't sort them again. */
    @Test
    void spliterators_of_keys_are_sorted() {
        try (LarderTable<Long, Long> table = LarderTable.builder(Codec.LONG, Codec.LONG).open()) {
            List<Long> keys = LongStream.range(0, 1000).boxed().collect(Collectors.toList());
            keys.forEach(key -> table.set(key, -key));
            Spliterator<Long> up = table.keySet().spliterator();
            assertTrue(up.hasCharacteristics(Spliterator.SORTED | Spliterator.DISTINCT));
            assertNull(up.getComparator());
            Spliterator<Long> down = table.descendingKeySet().spliterator();
            assertTrue(down.hasCharacteristics(Spliterator.SORTED));
            assertTrue(down.getComparator().compare(1L, 2L) > 0);
            // A part that is split off is in the same order, and doesn't pass for another one.
            Spliterator<Long> first = down.trySplit();
            long count = first.estimateSize();
            assertEquals(
                    keys.subList(1000 - (int) Math.min(1000, count), 1000),
                    StreamSupport.stream(first, false).sorted().collect(Collectors.toList()));
            assertEquals(keys, table.keySet().stream().sorted().collect(Collectors.toList()));
            assertEquals(
                    keys, table.descendingKeySet().stream().sorted().collect(Collectors.toList()));
            assertEquals(
                    keys, table.keySet().parallelStream().sorted().collect(Collectors.toList()));
        }
    }

    /** Views put a list at once, too: those of a table, a part, and in reverse. */
    @Test
    void lists_are_put_by_views() {
        try (LarderLongTable table = LarderLongTable.builder().open();
                LarderFeed<Long, Long> feed = table.feed().open()) {
            Map<Long, Long> rows = Map.of(5L, 5L, 6L, 6L, 7L, 7L);
            for (Map<Long, Long> view : List.of(table.tailMap(5L), table.descendingMap())) {
                view.putAll(rows);
                assertEquals(3, feed.poll().changes().size());
                assertNull(feed.poll());
            }
            assertThrows(IllegalArgumentException.class, () -> table.headMap(7L).putAll(rows));
            assertThrows(NullPointerException.class, () -> table.headMap(7L).putAll(null));
            assertNull(feed.poll());
            assertEquals(rows, table);
            try (LarderSnapshot<Long, Long> snapshot = table.snapshot()) {
                Map<Long, Long> part = snapshot.tailMap(5L);
                assertThrows(UnsupportedOperationException.class, () -> part.putAll(rows));
            }
        }
    }

    @Test
    void sums_of_ints_are_ints() {
        try (LarderTable<String, Integer> table =
                LarderTable.builder(Codec.STRING, Codec.INTEGER).open()) {
            table.put("a", Integer.MAX_VALUE);
            assertEquals(Integer.MIN_VALUE, table.addAndGet("a", 1));
            assertEquals(Map.of("a", Integer.MIN_VALUE), table);
            Operations back = new Operations().add(table, "a", -1);
            assertTrue(back.addIfPresent(table, "a", 1L << 32).commit().isEmpty());
            assertEquals(Map.of("a", Integer.MAX_VALUE), table);
        }
    }

    @Test
    void a_snapshot_is_of_one_instant() {
        try (LarderTable<String, Long> table =
                LarderTable.builder(Codec.STRING, Codec.LONG).open()) {
            table.put("pear", 3L);
            try (LarderSnapshot<String, Long> before = table.snapshot()) {
                table.put("pear", 4L);
                table.put("plum", 20L);
                assertEquals(Map.of("pear", 3L), before);
                assertEquals(1, before.size());
                assertEquals("pear", before.lastKey());
                assertEquals(
                        List.of(3L),
                        before.descendingMap().values().stream().collect(Collectors.toList()));
                assertThrows(UnsupportedOperationException.class, () -> before.put("quince", 1L));
                assertThrows(UnsupportedOperationException.class, before::clear);
                assertThrows(UnsupportedOperationException.class, before::pollFirstEntry);
                assertEquals(Map.of("pear", 4L, "plum", 20L), table);
            }
        }
    }

    @Test
    void rows_expire() throws InterruptedException {
        try (LarderTable<Long, String> table = LarderTable.builder(Codec.LONG, Codec.STRING)
                .ttl(Duration.ofMillis(150))
                .open()) {
            table.put(1L, "short");
            table.putFor(2L, "long", Duration.ofHours(1));
            table.put(3L, "for ever");
            assertTrue(table.persist(3L));
            assertFalse(table.persist(4L));
            assertTrue(table.timeLeft(1L).toMillis() <= 150);
            assertEquals(ChronoUnit.FOREVER.getDuration(), table.timeLeft(3L));
            assertNull(table.timeLeft(4L));
            long end = System.nanoTime() + 5_000_000_000L;
            while (table.containsKey(1L) && System.nanoTime() < end) {
                Thread.sleep(20);
            }
            assertNull(table.get(1L));
            assertNull(table.timeLeft(1L));
            assertEquals(List.of(2L, 3L), List.copyOf(table.keySet()));
            assertTrue(table.expire(2L, Duration.ZERO));
            assertNull(table.get(2L));
            assertThrows(UnsupportedOperationException.class, () -> table.rank(3L));
            assertThrows(
                    IllegalArgumentException.class, () -> table.expire(3L, Duration.ofMillis(-1)));
        }
    }

    @Test
    void a_table_without_times_has_none() {
        try (LarderLongTable table = LarderLongTable.builder().open()) {
            table.set(1, 1);
            assertThrows(
                    UnsupportedOperationException.class,
                    () -> table.expire(1L, Duration.ofSeconds(1)));
            assertThrows(UnsupportedOperationException.class, () -> table.timeLeft(1L));
        }
        try (LarderLongTable table = LarderLongTable.builder().expiring().open()) {
            table.set(1, 1);
            assertEquals(ChronoUnit.FOREVER.getDuration(), table.timeLeft(1L));
        }
    }

    @Test
    void limits_refuse_or_evict() {
        try (LarderLongTable table = LarderLongTable.builder().maxSize(10).open()) {
            for (long i = 0; i < 10; i++) {
                table.set(i, i);
            }
            assertThrows(LimitException.class, () -> table.set(10, 10));
            assertEquals(10, table.size());
            table.set(9, 90);
            assertEquals(90, table.get(9));
        }
        for (Evict evict : new Evict[] {Evict.LRU, Evict.SIEVE}) {
            try (LarderLongTable table =
                    LarderLongTable.builder().maxSize(100).evict(evict).open()) {
                for (long i = 0; i < 10_000; i++) {
                    table.set(i, i);
                }
                assertTrue(table.size() <= 200, () -> table.size() + " rows");
                assertTrue(table.size() >= 50, () -> table.size() + " rows");
            }
        }
        try (LarderLongBytesTable table =
                LarderLongBytesTable.builder().maxMemory(1 << 20).evict(Evict.TINY_LFU).open()) {
            for (long i = 0; i < 3_000; i++) {
                table.set(i, new byte[1_000]);
            }
            assertTrue(table.size() < 1_500, () -> table.size() + " rows");
        }
        assertThrows(IllegalArgumentException.class, () -> LarderLongTable.builder().maxSize(0));
        assertThrows(
                IllegalArgumentException.class, () -> LarderLongTable.builder().ttl(Duration.ZERO));
        LarderLongTable.builder().ttl(Duration.ofNanos(1)).open().close();
        assertEquals(2, TableBuilder.ms(Duration.ofNanos(1_000_001), "time"));
        assertEquals(
                Long.MAX_VALUE,
                TableBuilder.ms(Duration.ofSeconds(Long.MAX_VALUE, 999_999_999), "time"));
        assertThrows(
                IllegalArgumentException.class,
                () -> LarderLongTable.builder().evict(Evict.LRU).open());
        assertThrows(
                IllegalArgumentException.class,
                () -> LarderLongTable.builder().name("n".repeat(256)).open());
    }

    @Test
    void match_specifications() {
        try (LarderLongTable table = LarderLongTable.builder().open()) {
            table.putAll(
                    LongStream.range(0, 1000)
                            .boxed()
                            .collect(Collectors.toMap(n -> n, n -> n * n)));
            assertEquals(
                    List.of(Map.entry(4L, 16L), Map.entry(5L, 25L)),
                    table.select("[{{'$1','$2'},[{'>','$1',3},{'<','$1',6}],['$_']}]"));
            assertEquals(990, table.selectCount("[{{'$1','_'},[{'>=','$1',10}],[true]}]"));
            assertEquals(990, table.selectDelete("[{{'$1','_'},[{'>=','$1',10}],[true]}]"));
            assertEquals(10, table.size());
            String wrong =
                    assertThrows(
                                    IllegalArgumentException.class,
                                    () -> table.select("[{{'$1','$2'},[],['$7']}]"))
                            .getMessage();
            assertTrue(wrong.contains("$7"), wrong);
            assertThrows(
                    IllegalArgumentException.class,
                    () -> table.select("[{{'$1','$2'},[],['$1']}]"));
            assertThrows(IllegalArgumentException.class, () -> table.select("[{"));
            assertThrows(
                    IllegalArgumentException.class,
                    () -> table.select("[{{'$1','_'},[],[{{'$1',no_value}}]}]"));
        }
    }

    private record Point(int x, int y) {
        static final Codec<Point> CODEC = new Codec<>() {
            @Override
            public void write(Point point, Output out) {
                out.putInt(point.x);
                out.putInt(point.y);
            }

            @Override
            public Point read(Input in) {
                return new Point(in.getInt(), in.getInt());
            }
        };
    }

    @Test
    void a_codec_of_ones_own() {
        try (LarderTable<Integer, Point> table =
                LarderTable.builder(Codec.INTEGER, Point.CODEC).compressed().open()) {
            table.put(1, new Point(2, 3));
            assertTrue(table.replace(1, new Point(2, 3), new Point(4, 5)));
            assertEquals(new Point(4, 5), table.get(1));
            assertTrue(table.containsValue(new Point(4, 5)));
        }
    }

    @Test
    void a_codec_that_fails_or_uses_tables() {
        try (LarderLongTable log = LarderLongTable.builder().open()) {
            Codec<Long> codec = new Codec<>() {
                @Override
                public void write(Long value, Output out) {
                    if (value == 13) {
                        throw new IllegalStateException("13");
                    }
                    log.merge(value, 1L, Long::sum);
                    out.putLong(value);
                    if (value == 14) {
                        out.integer(14);
                    }
                }

                @Override
                public Long read(Input in) {
                    long value = in.getLong();
                    log.merge(value, 1L, Long::sum);
                    return value == 15 ? in.getLong() : value;
                }
            };
            try (LarderTable<Long, Long> table = LarderTable.builder(Codec.LONG, codec).open()) {
                table.put(1L, 7L);
                assertEquals(7L, table.put(1L, 8L));
                assertThrows(IllegalStateException.class, () -> table.put(1L, 13L));
                assertThrows(IllegalStateException.class, () -> table.put(1L, 14L));
                assertThrows(
                        IllegalStateException.class, () -> table.putAll(Map.of(2L, 2L, 3L, 13L)));
                table.put(5L, 15L);
                assertThrows(LarderException.class, () -> table.get(5L));
                assertEquals(8L, table.get(1L));
                assertEquals(2, table.size());
                assertTrue(log.get(8L) >= 2);
            }
        }
    }
}
