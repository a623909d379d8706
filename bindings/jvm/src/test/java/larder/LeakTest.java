package larder;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
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
        assertTrue(more < rows / 8, () -> "resident memory grew by " + more + " of " + rows + " bytes of rows");
    }

    @Test
    void tables_that_are_left() throws InterruptedException {
        long open = Native.handles();
        for (int i = 0; i < 20; i++) {
            leave();
        }
        long end = System.nanoTime() + 20_000_000_000L;
        while (Native.handles() > open && System.nanoTime() < end) {
            System.gc();
            Thread.sleep(20);
        }
        assertTrue(Native.handles() <= open, () -> Native.handles() - open + " tables were not closed");
    }

    private static void leave() {
        LarderLongTable table = LarderLongTable.builder().open();
        table.set(1, 1);
        assertEquals(1, table.snapshot().size());
    }

    @Test
    void a_view_keeps_its_table() throws InterruptedException {
        java.util.Map<Long, Long> view = viewOfATableThatIsLeft();
        for (int i = 0; i < 5; i++) {
            System.gc();
            Thread.sleep(10);
        }
        assertEquals(1L, view.get(1L));
    }

    private static java.util.Map<Long, Long> viewOfATableThatIsLeft() {
        LarderLongTable table = LarderLongTable.builder().open();
        table.set(1, 1);
        return table.headMap(5L);
    }
}
