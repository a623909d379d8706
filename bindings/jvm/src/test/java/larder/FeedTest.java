package larder;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Feeds. Each test also leaves no native handle open. */
@Timeout(30)
class FeedTest {
    private static final Duration LONG = Duration.ofSeconds(20);

    private long open;
    private LarderTable<Long, String> table;

    @BeforeEach
    void open() {
        open = Native.handles();
        table = LarderTable.builder(Codec.LONG, Codec.STRING).expiring().open();
    }

    @AfterEach
    void close() {
        table.close();
        assertEquals(open, Native.handles());
    }

    private static <K, V> Change<K, V> change(Change.Type type, K key, V before, V after) {
        return new Change<>(type, key, before, after, 0);
    }

    /** The next so many changes. */
    private static <K, V> List<Change<K, V>> changes(LarderFeed<K, V> feed, int count)
            throws InterruptedException {
        List<Change<K, V>> found = new ArrayList<>();
        while (found.size() < count) {
            Commit<K, V> commit = feed.poll(LONG);
            assertTrue(commit != null, () -> "no more than " + found);
            found.addAll(commit.changes());
        }
        return found;
    }

    @Test
    void every_event_is_delivered() throws InterruptedException {
        table.put(1L, "before");
        LarderFeed<Long, String> feed = table.feed().open();
        assertNull(feed.poll());
        assertNull(feed.poll(Duration.ofMillis(1)));
        table.put(1L, "after");
        table.put(2L, "x");
        table.remove(2L);
        table.remove(3L);
        table.putFor(4L, "short", Duration.ofMillis(1));
        assertEquals(
                List.of(
                        change(Change.Type.REPLACE, 1L, "before", "after"),
                        change(Change.Type.INSERT, 2L, null, "x"),
                        change(Change.Type.DELETE, 2L, "x", null),
                        change(Change.Type.INSERT, 4L, null, "short"),
                        change(Change.Type.EXPIRE, 4L, "short", null)),
                changes(feed, 5));
        table.clear();
        assertEquals(List.of(change(Change.Type.CLEAR, null, null, null)), changes(feed, 1));
        assertFalse(feed.isOver());
        table.close();
        assertEquals(List.of(change(Change.Type.GONE, null, null, null)), feed.take().changes());
        assertTrue(feed.isOver());
        String text = assertThrows(IllegalStateException.class, feed::take).getMessage();
        assertTrue(text.contains("over"), text);
        assertThrows(IllegalStateException.class, feed::poll);
        assertThrows(IllegalStateException.class, () -> feed.listen(commit -> {}));
        assertThrows(IllegalStateException.class, () -> table.feed().open());
        feed.close();
        feed.close();
    }

    @Test
    void evictions_are_delivered() throws InterruptedException {
        try (LarderLongTable small = LarderLongTable.builder().maxSize(10).evict(Evict.LRU).open();
                LarderFeed<Long, Long> feed = small.feed().open()) {
            for (long i = 0; i < 1_000; i++) {
                small.set(i, i);
            }
            long evicted = 0;
            for (Commit<Long, Long> commit; (commit = feed.poll()) != null; ) {
                for (Change<Long, Long> change : commit.changes()) {
                    if (change.type() == Change.Type.EVICT) {
                        assertEquals(change.key(), change.before());
                        evicted++;
                    }
                }
            }
            assertTrue(evicted >= 900, evicted + " were evicted");
        }
    }

    @Test
    void what_took_effect_together_is_one_commit() throws InterruptedException {
        try (LarderLongTable other = LarderLongTable.builder().open();
                LarderFeed<Long, String> feed = table.feed().open();
                LarderFeed<Long, Long> others = other.feed().open()) {
            LarderTransaction.on(table, other).run(views -> {
                views.of(table).put(1L, "a");
                views.of(table).put(2L, "b");
                views.of(other).put(3L, 4L);
            });
            Commit<Long, String> commit = feed.take();
            assertEquals(
                    List.of(
                            change(Change.Type.INSERT, 1L, null, "a"),
                            change(Change.Type.INSERT, 2L, null, "b")),
                    commit.changes());
            assertEquals(commit.seq(), others.take().seq());
            new Operations().put(table, 1L, "c").remove(table, 2L).commit();
            Commit<Long, String> next = feed.take();
            assertEquals(2, next.changes().size());
            assertTrue(next.seq() > commit.seq());
            table.putAll(Map.of(5L, "e", 6L, "f", 7L, "g"));
            assertEquals(3, feed.take().changes().size());
            assertThrows(UnsupportedOperationException.class, () -> next.changes().clear());
        }
    }

    @Test
    void a_filter_picks_by_the_row_before_or_after() throws InterruptedException {
        try (LarderLongTable numbers = LarderLongTable.builder().open();
                LarderFeed<Long, Long> feed =
                        numbers.feed().filter("[{{'_','$1'},[{'>','$1',10}],[true]}]").open()) {
            numbers.set(1, 5);
            numbers.set(1, 50);
            numbers.set(1, 6);
            numbers.set(1, 7);
            numbers.remove(1);
            numbers.set(2, 20);
            assertEquals(
                    List.of(
                            change(Change.Type.REPLACE, 1L, 5L, 50L),
                            change(Change.Type.REPLACE, 1L, 50L, 6L),
                            change(Change.Type.INSERT, 2L, null, 20L)),
                    changes(feed, 3));
            assertNull(feed.poll());
            String text = assertThrows(
                            IllegalArgumentException.class,
                            () -> numbers.feed().filter("[{{'_','$1'},[],['$7']}]").open())
                    .getMessage();
            assertTrue(text.contains("$7"), text);
            assertThrows(IllegalArgumentException.class, () -> numbers.feed().limit(0));
        }
    }

    /** A reader gets its time and its interrupts beside changes that the filter leaves out. */
    @Test
    void changes_that_are_left_out_hold_nobody() throws Exception {
        AtomicBoolean stop = new AtomicBoolean();
        try (LarderLongTable numbers = LarderLongTable.builder().open();
                LarderFeed<Long, Long> feed =
                        numbers.feed().filter("[{{'_','$1'},[{'<','$1',0}],[true]}]").open()) {
            Thread writer = new Thread(() -> {
                for (long i = 0; !stop.get(); i++) {
                    numbers.set(i % 100, i);
                }
            });
            writer.start();
            try {
                assertTimeoutPreemptively(Duration.ofSeconds(20), () -> {
                    // The writer may be ahead by more than the feed keeps.
                    for (int i = 0; i < 20; i++) {
                        assertTrue(isNothingOrOverflow(feed.poll(Duration.ofMillis(5))));
                        assertTrue(isNothingOrOverflow(feed.poll()));
                    }
                    Thread.currentThread().interrupt();
                    assertThrows(InterruptedException.class, () -> {
                        while (isNothingOrOverflow(feed.take())) {
                            continue;
                        }
                    });
                });
            } finally {
                stop.set(true);
                writer.join();
            }
        }
    }

    private static boolean isNothingOrOverflow(Commit<Long, Long> commit) {
        return commit == null || commit.changes().get(0).type() == Change.Type.OVERFLOW;
    }

    /** A reply has to fit into an array: it has few changes if they are long, and none is lost. */
    @Test
    void long_values_come_in_short_replies() {
        try (LarderTable<Long, byte[]> table = LarderTable.builder(Codec.LONG, Codec.BYTES).open();
                LarderFeed<Long, byte[]> feed = table.feed().open()) {
            long[] plain = new long[2];
            table.store.subscribe(-1, 1_000, null, false, plain);
            for (long i = 0; i < 40; i++) {
                table.put(i, new byte[1 << 20]);
            }
            int length = Native.changes(plain[0], new byte[0], Integer.MAX_VALUE);
            Native.close(plain[0]);
            assertTrue(length > 1 << 20 && length < 4 << 20, length + " bytes");
            for (long i = 0; i < 40; i++) {
                assertEquals(i, feed.poll().changes().get(0).key());
            }
            assertNull(feed.poll());
        }
    }

    /** What Java had no room for is the next that it gets. */
    @Test
    void changes_stay_until_there_is_room_for_them() {
        try (LarderLongTable numbers = LarderLongTable.builder().open()) {
            long[] plain = new long[2];
            numbers.store.subscribe(-1, 1_000, null, false, plain);
            numbers.set(1, 10);
            int length = Native.changes(plain[0], new byte[0], 1_000);
            numbers.set(2, 20);
            assertEquals(length, Native.changes(plain[0], new byte[length - 1], 1_000));
            byte[] reply = new byte[length];
            assertEquals(length, Native.changes(plain[0], reply, 1_000));
            Input input = new Input().of(reply);
            assertEquals(1, input.number());
            input.flag();
            input.longNumber();
            input.flag();
            assertEquals(1, input.integerItem());
            assertEquals(length, Native.changes(plain[0], reply, 1_000));
            input.skip(true);
            Native.close(plain[0]);
            assertThrows(IllegalStateException.class, () -> Native.changes(plain[0], reply, 1_000));
        }
    }

    /** One call doesn't go through all changes that the filter leaves out. */
    @Test
    void a_call_goes_through_few_changes_that_are_left_out() {
        try (LarderLongTable numbers = LarderLongTable.builder().open()) {
            long[] plain = new long[2];
            String negative = "[{{'_','$1'},[{'<','$1',0}],[true]}]";
            numbers.store.subscribe(-1, 10_000, negative, false, plain);
            for (long i = 0; i < 5_000; i++) {
                numbers.set(i, i);
            }
            byte[] reply = new byte[100];
            int calls = 0;
            int state;
            do {
                calls++;
                Native.changes(plain[0], reply, 1_000);
                Input input = new Input().of(reply);
                assertEquals(0, input.number());
                state = input.flag();
            } while (state == 0);
            Native.close(plain[0]);
            assertEquals(1, state, "nothing is left");
            assertTrue(calls >= 5_000 / 128, calls + " calls");
        }
    }

    /** A commit that no array has room for is an overflow; those beside it are delivered. */
    @Test
    void too_long_commits_overflow() {
        LarderLongBytesTable blobs = LarderLongBytesTable.builder().open();
        long[] plain = new long[2];
        blobs.store.subscribe(-1, 1_000, null, false, plain);
        byte[] blob = new byte[500];
        blobs.set(1, blob);
        new Operations().put(blobs, 2L, blob).put(blobs, 3L, blob).put(blobs, 4L, blob).commit();
        blobs.set(5, blob);
        blobs.close();
        byte[] reply = new byte[10_000];
        Native.changes(plain[0], reply, 1_000);
        Native.close(plain[0]);
        Input input = new Input().of(reply);
        assertEquals(4, input.number());
        input.flag();
        List<String> found = new ArrayList<>();
        long last = 0;
        for (int i = 0; i < 4; i++) {
            long seq = input.longNumber();
            assertTrue(seq > last, () -> found.toString());
            last = seq;
            Change.Type type = Change.Type.values()[input.flag()];
            long number = 0;
            if (type == Change.Type.INSERT) {
                number = input.integerItem();
                input.skip(true);
            } else if (type == Change.Type.OVERFLOW) {
                number = input.longNumber();
            }
            found.add(type + " " + number);
        }
        assertEquals(List.of("INSERT 1", "OVERFLOW 3", "INSERT 5", "GONE 0"), found);
    }

    /** Who waits when a listener comes takes no commit from it. */
    @Test
    void a_listener_gets_what_others_waited_for() throws Exception {
        try (LarderLongTable numbers = LarderLongTable.builder().open();
                LarderFeed<Long, Long> feed = numbers.feed().open()) {
            AtomicReference<Throwable> refused = new AtomicReference<>();
            Thread taker = new Thread(() -> {
                try {
                    feed.take();
                } catch (Throwable e) {
                    refused.set(e);
                }
            });
            taker.start();
            while (taker.getState() != Thread.State.TIMED_WAITING) {
                Thread.sleep(1);
            }
            LinkedBlockingQueue<Commit<Long, Long>> heard = new LinkedBlockingQueue<>();
            feed.listen(heard::add);
            taker.join(10_000);
            assertTrue(
                    refused.get() instanceof IllegalStateException, String.valueOf(refused.get()));
            numbers.set(1, 2);
            assertEquals(1L, heard.poll(10, TimeUnit.SECONDS).changes().get(0).key());
        }
    }

    @Test
    void lost_events_are_reported() throws InterruptedException {
        try (LarderLongTable numbers = LarderLongTable.builder().open();
                LarderFeed<Long, Long> feed = numbers.feed().limit(10).open()) {
            for (long i = 0; i < 100; i++) {
                numbers.set(i, i);
            }
            List<Change<Long, Long>> found = changes(feed, 11);
            assertEquals(
                    new Change<Long, Long>(Change.Type.OVERFLOW, null, null, null, 90),
                    found.get(0));
            assertEquals(change(Change.Type.INSERT, 90L, null, 90L), found.get(1));
            assertEquals(11, found.size());
            try (LarderFeed.WithSnapshot<Long, Long> again = numbers.feed().openWithSnapshot()) {
                assertEquals(100, again.snapshot().size());
                numbers.set(1, 2);
                assertEquals(
                        List.of(change(Change.Type.REPLACE, 1L, 1L, 2L)), changes(again.feed(), 1));
                assertEquals(1L, again.snapshot().get(1L));
            }
        }
    }

    /** A mirror that begins with a snapshot, while others write, ends as the table does. */
    @Test
    void a_snapshot_and_its_feed_have_no_gap() throws Exception {
        for (int round = 0; round < 20; round++) {
            try (LarderLongTable numbers = LarderLongTable.builder().open()) {
                List<Thread> writers = new ArrayList<>();
                CountDownLatch begun = new CountDownLatch(2);
                for (int t = 0; t < 2; t++) {
                    Random random = new Random(round * 2L + t);
                    Thread writer = new Thread(() -> {
                        for (int i = 0; i < 3_000; i++) {
                            long key = random.nextInt(100);
                            switch (random.nextInt(4)) {
                                case 0 -> numbers.remove(key);
                                case 1 -> numbers.putAll(
                                        Map.of(key, random.nextLong(), key + 1, random.nextLong()));
                                default -> numbers.set(key, random.nextLong());
                            }
                            if (i == 500) {
                                begun.countDown();
                            }
                        }
                    });
                    writers.add(writer);
                    writer.start();
                }
                begun.await();
                TreeMap<Long, Long> mirror;
                try (LarderFeed.WithSnapshot<Long, Long> both =
                        numbers.feed().limit(1_000_000).openWithSnapshot()) {
                    mirror = new TreeMap<>(both.snapshot());
                    for (Thread writer : writers) {
                        writer.join();
                    }
                    long last = 0;
                    for (Commit<Long, Long> commit; (commit = both.feed().poll()) != null; ) {
                        assertTrue(commit.seq() >= last);
                        last = commit.seq();
                        for (Change<Long, Long> change : commit.changes()) {
                            if (change.after() == null) {
                                assertEquals(change.before(), mirror.remove(change.key()));
                            } else {
                                assertEquals(
                                        change.before(), mirror.put(change.key(), change.after()));
                            }
                        }
                    }
                }
                assertEquals(numbers, mirror);
            }
        }
    }

    /** Each commit goes to one of several that take; none of them sleeps while there is one. */
    @Test
    void several_may_take() throws Exception {
        LarderLongTable numbers = LarderLongTable.builder().open();
        LarderFeed<Long, Long> feed = numbers.feed().limit(1_000_000).open();
        int writes = 20_000;
        LinkedBlockingQueue<Long> found = new LinkedBlockingQueue<>();
        List<Thread> takers = new ArrayList<>();
        AtomicReference<Throwable> wrong = new AtomicReference<>();
        for (int t = 0; t < 3; t++) {
            Thread taker = new Thread(() -> {
                try {
                    while (true) {
                        feed.take().changes().forEach(change -> found.add(change.key()));
                    }
                } catch (IllegalStateException e) {
                    // Closed.
                } catch (Throwable e) {
                    wrong.set(e);
                }
            });
            takers.add(taker);
            taker.start();
        }
        for (long i = 0; i < writes; i++) {
            numbers.set(i, i);
            if (i % 100 == 0) {
                // All of them go to sleep now and then.
                Thread.sleep(1);
            }
        }
        boolean[] met = new boolean[writes];
        for (int i = 0; i < writes; i++) {
            Long key = found.poll(20, TimeUnit.SECONDS);
            assertTrue(key != null, "no more than " + i);
            assertFalse(met[key.intValue()]);
            met[key.intValue()] = true;
        }
        feed.close();
        for (Thread taker : takers) {
            taker.join();
        }
        assertNull(wrong.get());
        numbers.close();
    }

    @Test
    void a_wait_ends_with_an_interrupt_or_a_close() throws Exception {
        LarderFeed<Long, String> feed = table.feed().open();
        for (boolean isClosed : new boolean[] {false, true}) {
            AtomicReference<Throwable> thrown = new AtomicReference<>();
            Thread taker = new Thread(() -> {
                try {
                    feed.take();
                } catch (Throwable e) {
                    thrown.set(e);
                }
            });
            taker.start();
            while (taker.getState() != Thread.State.TIMED_WAITING) {
                Thread.sleep(1);
            }
            if (isClosed) {
                feed.close();
            } else {
                taker.interrupt();
            }
            taker.join();
            assertSame(
                    isClosed ? IllegalStateException.class : InterruptedException.class,
                    thrown.get().getClass());
        }
        String text = assertThrows(IllegalStateException.class, feed::poll).getMessage();
        assertTrue(text.contains("feed is closed"), text);
        assertThrows(IllegalStateException.class, feed::take);
        assertThrows(IllegalStateException.class, () -> feed.poll(Duration.ZERO));
        assertThrows(IllegalStateException.class, () -> feed.listen(commit -> {}));
    }

    @Test
    void a_listener_is_called_until_the_close() throws Exception {
        LarderFeed<Long, String> feed = table.feed().open();
        LinkedBlockingQueue<Change<Long, String>> told = new LinkedBlockingQueue<>();
        CompletableFuture<Void> end = feed.listen(commit -> told.addAll(commit.changes()));
        table.put(1L, "a");
        assertEquals(change(Change.Type.INSERT, 1L, null, "a"), told.poll(20, TimeUnit.SECONDS));
        assertThrows(IllegalStateException.class, feed::poll);
        assertThrows(IllegalStateException.class, feed::take);
        assertThrows(IllegalStateException.class, () -> feed.listen(commit -> {}));
        assertFalse(end.isDone());
        feed.close();
        end.get(20, TimeUnit.SECONDS);
        table.put(2L, "b");
        assertNull(told.poll(50, TimeUnit.MILLISECONDS));
        // The end of the table ends the next one.
        LarderFeed<Long, String> other = table.feed().open();
        CompletableFuture<Void> gone = other.listen(commit -> told.addAll(commit.changes()));
        table.close();
        gone.get(20, TimeUnit.SECONDS);
        assertEquals(change(Change.Type.GONE, null, null, null), told.poll());
        assertTrue(other.isOver());
    }

    @Test
    void a_listener_may_write_and_close_and_may_not_poll() throws Exception {
        AtomicReference<LarderFeed<Long, String>> feed = new AtomicReference<>(table.feed().open());
        List<Long> told = new ArrayList<>();
        CompletableFuture<Void> end = feed.get().listen(commit -> {
            long key = commit.changes().get(0).key();
            told.add(key);
            assertThrows(IllegalStateException.class, feed.get()::poll);
            assertThrows(IllegalStateException.class, feed.get()::take);
            if (key < 5) {
                table.put(key + 1, "next");
            } else {
                LarderTransaction.on(table).run(views -> views.of(table).put(key + 1, "not told"));
                feed.get().close();
            }
        });
        table.put(1L, "first");
        end.get(20, TimeUnit.SECONDS);
        assertEquals(List.of(1L, 2L, 3L, 4L, 5L), told);
        assertEquals("not told", table.get(6L));
        // One that closes the table is notified of that, and of no more.
        List<Change.Type> types = new ArrayList<>();
        end = table.feed().open().listen(commit -> {
            commit.changes().forEach(change -> types.add(change.type()));
            table.close();
        });
        table.put(1L, "again");
        end.get(20, TimeUnit.SECONDS);
        assertEquals(List.of(Change.Type.REPLACE, Change.Type.GONE), types);
    }

    @Test
    void what_a_listener_throws_closes_its_feed() throws Exception {
        LarderFeed<Long, String> feed = table.feed().open();
        IllegalArgumentException thrown = new IllegalArgumentException("enough");
        CompletableFuture<Void> end = feed.listen(commit -> {
            throw thrown;
        });
        table.put(1L, "a");
        assertSame(thrown, assertThrows(CompletionException.class, end::join).getCause());
        assertThrows(IllegalStateException.class, () -> feed.listen(commit -> {}));
        // An executor that has no room leaves the feed as it was.
        LarderFeed<Long, String> other = table.feed().open();
        assertThrows(RejectedExecutionException.class, () -> other.listen(
                task -> {
                    throw new RejectedExecutionException();
                },
                commit -> {}));
        table.put(1L, "b");
        assertEquals(1, other.take().changes().size());
        other.close();
    }

    @Test
    void a_codec_that_fails_loses_one_commit() throws Exception {
        AtomicReference<LarderFeed<Long, String>> own = new AtomicReference<>();
        Codec<String> picky = new Codec<>() {
            @Override
            public void write(String value, Output out) {
                Codec.STRING.write(value, out);
            }

            @Override
            public String read(Input in) {
                String text = Codec.STRING.read(in);
                if (text.equals("poll")) {
                    own.get().poll();
                }
                if (text.equals("bad")) {
                    throw new ArithmeticException(text);
                }
                return text;
            }
        };
        try (LarderTable<Long, String> texts = LarderTable.builder(Codec.LONG, picky).open();
                LarderFeed<Long, String> feed = texts.feed().open()) {
            own.set(feed);
            texts.set(1L, "a");
            texts.putAll(Map.of(2L, "bad", 3L, "c"));
            texts.set(4L, "poll");
            texts.set(5L, "e");
            assertEquals(1L, feed.take().changes().get(0).key());
            assertThrows(ArithmeticException.class, feed::poll);
            assertThrows(IllegalStateException.class, feed::poll);
            assertEquals(5L, feed.take().changes().get(0).key());
        }
    }

    /** Feeds that are opened and closed while others write and poll. */
    @Test
    void close_races_with_polls() throws Exception {
        LarderLongTable numbers = LarderLongTable.builder().open();
        AtomicReference<Throwable> wrong = new AtomicReference<>();
        AtomicReference<LarderFeed<Long, Long>> current =
                new AtomicReference<>(numbers.feed().open());
        long end = System.nanoTime() + 1_000_000_000L;
        List<Thread> threads = new ArrayList<>();
        for (int t = 0; t < 3; t++) {
            int me = t;
            Thread thread = new Thread(() -> {
                Random random = new Random(me);
                while (System.nanoTime() < end && wrong.get() == null) {
                    try {
                        if (me == 0) {
                            numbers.set(random.nextInt(100), 1);
                        } else {
                            current.get().poll(Duration.ofMillis(5));
                        }
                    } catch (IllegalStateException e) {
                        // Closed.
                    } catch (Throwable e) {
                        wrong.compareAndSet(null, e);
                    }
                }
            });
            threads.add(thread);
            thread.start();
        }
        int closed = 0;
        while (System.nanoTime() < end && wrong.get() == null) {
            current.getAndSet(numbers.feed().open()).close();
            closed++;
        }
        for (Thread thread : threads) {
            thread.join();
        }
        current.get().close();
        numbers.close();
        assertNull(wrong.get());
        assertTrue(closed > 100, closed + " closed");
    }
}
