package larder;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

/** Snapshots, times, limits, match specifications, codecs of one's own. */
class TableTest {
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
