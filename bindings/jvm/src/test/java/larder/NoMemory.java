package larder;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;

/**
 * A program that fills its heap, does something with a little room, and looks whether anything was
 * left open or lost. {@link LeakTest} runs it with a small heap.
 */
final class NoMemory {
    private static final int TRIALS = 20;
    private static final Object[] HOARD = new Object[50_000];

    private static int hoarded;

    private interface Act {
        void run() throws Exception;
    }

    private NoMemory() {}

    /** Takes what memory there is, in pieces of so many bytes. */
    private static void hoard(int bytes) {
        try {
            while (true) {
                HOARD[hoarded] = new byte[bytes];
                hoarded++;
            }
        } catch (OutOfMemoryError e) {
            // That is all.
        }
    }

    private static void release(int kept) {
        while (hoarded > kept) {
            HOARD[--hoarded] = null;
        }
    }

    /** Runs it with so many bytes left; whether these were enough. */
    private static boolean runs(Act act, int room) throws Exception {
        int kept = hoarded;
        Object[] spare = {new byte[room]};
        hoard(64);
        hoard(0);
        spare[0] = null;
        try {
            act.run();
            return true;
        } catch (OutOfMemoryError e) {
            return false;
        } finally {
            release(kept);
        }
    }

    /** Runs it in many trials; it has to fail in some of them, and leave nothing open. */
    private static void leavesNothing(String what, Act act) throws Exception {
        long open = Native.handles();
        int failed = 0;
        for (int trial = 0; trial < TRIALS; trial++) {
            failed += runs(act, 40 * trial) ? 0 : 1;
        }
        for (int i = 0; i < 100 && Native.handles() != open; i++) {
            System.gc();
            Thread.sleep(10);
        }
        System.out.println(what + ": " + failed + " of " + TRIALS + " failed");
        check(failed > 0, what + ": each trial had enough memory");
        check(Native.handles() == open, what + ": " + (Native.handles() - open) + " stayed open");
    }

    private static void check(boolean holds, String otherwise) {
        if (!holds) {
            System.out.println(otherwise);
            System.exit(1);
        }
    }

    /** Changes with short and with long values, read with little memory: each comes in order. */
    private static void losesNoChange() throws Exception {
        try (LarderLongBytesTable table = LarderLongBytesTable.builder().open();
                LarderFeed<Long, byte[]> feed = table.feed().open()) {
            byte[][] values = {new byte[10], new byte[100_000]};
            Commit<?, ?>[] got = {null};
            Act poll = () -> got[0] = feed.poll();
            int failed = 0;
            Random random = new Random(2);
            for (long key = 0; key < 2 * TRIALS; key++) {
                table.set(key, values[(int) key % 2]);
                failed += runs(poll, random.nextInt(1_000)) ? 0 : 1;
                if (got[0] == null) {
                    poll.run();
                }
                check(got[0] != null && got[0].changes().get(0).key().equals(key), "lost: " + key);
                got[0] = null;
                check(feed.poll() == null, "twice: " + key);
            }
            System.out.println("poll: " + failed + " of " + 2 * TRIALS + " failed");
            check(failed > TRIALS, "most trials had enough memory");
        }
    }

    public static void main(String[] arguments) throws Exception {
        Path file = Files.createTempFile("larder", "table");
        LarderLongTable table = LarderLongTable.builder().open();
        table.save(file);
        LarderTransaction transaction = LarderTransaction.on(table);
        LarderLongBytesTable blobs = LarderLongBytesTable.builder().open();
        blobs.set(1L, new byte[100_000]);
        Act[] acts = {
            () -> blobs.get(1L),
            () -> LarderLongTable.builder().open().close(),
            () -> LarderLongTable.load(file).close(),
            () -> table.snapshot().close(),
            () -> transaction.run(views -> views.of(table).set(1L, 2L)),
            () -> table.feed().open().close(),
            () -> table.feed().openWithSnapshot().close(),
        };
        String[] names = {
            "get", "open", "load", "snapshot", "transaction", "feed", "feed with snapshot"
        };
        // All classes are loaded before there is no memory for them.
        for (int i = 0; i < 100; i++) {
            for (Act act : acts) {
                act.run();
            }
        }
        // Most of the heap is taken once, and the rest for each trial.
        hoard(1 << 12);
        release(hoarded - 100);
        losesNoChange();
        hoard(1 << 12);
        release(hoarded - 50);
        for (int i = 0; i < acts.length; i++) {
            leavesNothing(names[i], acts[i]);
        }
        release(0);
        Files.delete(file);
        System.out.println("ok");
        System.exit(0);
    }
}
