package larder;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;

/** What is closed, or left, gives its memory back. */
class LeakTest {
    private static final int ROWS = 50_000;

    /** Resident bytes of the process. */
    private static long resident() throws IOException {
        String[] pages = Files.readString(Path.of("/proc/self/statm")).split(" ");
        return Long.parseLong(pages[1]) * 4096;
    }

    private static LarderLongBytesTable filled() {
        LarderLongBytesTable table = LarderLongBytesTable.builder().open();
        byte[] value = new byte[100];
        for (long key = 0; key < ROWS; key++) {
            table.set(key, value);
        }
        return table;
    }

    @Test
    void tables_made_and_closed() throws IOException, InterruptedException {
        Assumptions.assumeTrue(Files.exists(Path.of("/proc/self/statm")));
        for (int i = 0; i < 10; i++) {
            filled().close();
        }
        Thread.sleep(300);
        long before = resident(), open = Native.handles();
        int tables = 80;
        for (int i = 0; i < tables; i++) {
            try (LarderLongBytesTable table = filled();
                    LarderSnapshot<Long, byte[]> snapshot = table.snapshot()) {
                table.clear();
                assertEquals(ROWS, snapshot.size());
            }
        }
        assertEquals(open, Native.handles());
        long rows = 100L * ROWS * tables;
        long end = System.nanoTime() + 5_000_000_000L;
        while (resident() - before > rows / 8 && System.nanoTime() < end) {
            Thread.sleep(50);
        }
        long more = resident() - before;
        assertTrue(
                more < rows / 8,
                () -> "resident memory grew by " + more + " of " + rows + " bytes of rows");
    }

    @Test
    void tables_that_are_left() throws InterruptedException {
        long open = Native.handles();
        for (int i = 0; i < 20; i++) {
            leave();
        }
        assertClosed(open);
    }

    /** What was left is closed in time, and not while another test counts what is open. */
    private static void assertClosed(long open) throws InterruptedException {
        long end = System.nanoTime() + 20_000_000_000L;
        while (Native.handles() > open && System.nanoTime() < end) {
            System.gc();
            Thread.sleep(20);
        }
        assertTrue(
                Native.handles() <= open,
                () -> Native.handles() - open + " tables were not closed");
    }

    private static void leave() {
        LarderLongTable table = LarderLongTable.builder().open();
        table.set(1, 1);
        assertEquals(1, table.snapshot().size());
        LarderFeed.WithSnapshot<Long, Long> feed = table.feed().openWithSnapshot();
        table.set(1, 2);
        assertEquals(1, feed.feed().poll().changes().size());
    }

    /** Feeds and transactions, ended in each way, leave no handle and no memory. */
    @Test
    void feeds_and_transactions_made_and_ended() throws IOException, InterruptedException {
        Assumptions.assumeTrue(Files.exists(Path.of("/proc/self/statm")));
        long open = Native.handles();
        try (LarderLongBytesTable table = LarderLongBytesTable.builder().open()) {
            byte[] value = new byte[10_000];
            LarderTransaction transaction = LarderTransaction.on(table);
            long before = 0;
            for (int i = 0; i < 22_000; i++) {
                if (i == 2_000) {
                    Thread.sleep(300);
                    before = resident();
                }
                long key = i % 10;
                transaction.run(views -> views.of(table).set(key, value));
                assertThrows(IllegalArgumentException.class, () -> transaction.run(views -> {
                    views.of(table).set(key, value);
                    throw new IllegalArgumentException();
                }));
                new Operations().put(table, key, value).commit();
                try (LarderFeed<Long, byte[]> feed = table.feed().open()) {
                    table.set(key, value);
                    if (i % 2 == 0) {
                        assertEquals(1, feed.poll().changes().size());
                    }
                }
            }
            assertEquals(open + 1, Native.handles());
            long written = 20_000L * 4 * value.length;
            long end = System.nanoTime() + 5_000_000_000L;
            while (resident() - before > written / 8 && System.nanoTime() < end) {
                Thread.sleep(50);
            }
            long more = resident() - before;
            assertTrue(
                    more < written / 8,
                    () -> "resident memory grew by " + more + " of " + written + " bytes");
        }
        assertEquals(open, Native.handles());
    }

    /** Nothing is open if the array for the numbers of what is opened has no room for them. */
    @Test
    void what_can_not_be_handed_over_is_closed() {
        try (LarderLongTable table = LarderLongTable.builder().open()) {
            long open = Native.handles();
            long[] tables = {table.store.id};
            assertThrows(IndexOutOfBoundsException.class, () -> Native.begin(tables, new long[1]));
            assertEquals(open, Native.handles());
            assertThrows(
                    IndexOutOfBoundsException.class,
                    () -> table.store.subscribe(-1, 1, null, true, new long[1]));
            assertEquals(open, Native.handles());
        }
    }

    /** A table is not opened before all else is there. */
    @Test
    void codecs_that_fail_leave_nothing_open() {
        Codec<Long> bad = new Codec<>() {
            @Override
            public void write(Long value, Output out) {}

            @Override
            public Long read(Input in) {
                return 0L;
            }

            @Override
            public java.util.Comparator<Long> comparator() {
                throw new ArithmeticException();
            }
        };
        long open = Native.handles();
        assertThrows(ArithmeticException.class, () -> LarderTable.builder(bad, bad).open());
        assertEquals(open, Native.handles());
    }

    /**
     * In a JVM without memory nothing stays open in the native library that nobody would close, and
     * no change of a feed is lost.
     */
    @Test
    void java_without_memory() throws Exception {
        String classes = "";
        for (Class<?> each : List.of(NoMemory.class, Native.class)) {
            classes +=
                    Path.of(each.getProtectionDomain().getCodeSource().getLocation().toURI()) + ":";
        }
        Process child = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-Xmx8m", "-XX:+UseSerialGC", "-cp", classes, "larder.NoMemory")
                .redirectErrorStream(true)
                .start();
        String said = new String(child.getInputStream().readAllBytes());
        assertEquals(0, child.waitFor(), said);
    }

    @Test
    void a_view_keeps_its_table() throws InterruptedException {
        long open = Native.handles();
        java.util.Map<Long, Long> view = viewOfATableThatIsLeft();
        for (int i = 0; i < 5; i++) {
            System.gc();
            Thread.sleep(10);
        }
        assertEquals(1L, view.get(1L));
        view = null;
        assertClosed(open);
    }

    private static java.util.Map<Long, Long> viewOfATableThatIsLeft() {
        LarderLongTable table = LarderLongTable.builder().open();
        table.set(1, 1);
        return table.headMap(5L);
    }
}
