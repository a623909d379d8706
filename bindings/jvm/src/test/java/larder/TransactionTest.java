package larder;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Random;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentNavigableMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;

/** Transactions and lists of operations. Each test also leaves no native handle open. */
@Timeout(30)
class TransactionTest {
    private long open;
    private LarderLongTable numbers;
    private LarderTable<String, String> texts;

    @BeforeEach
    void open() {
        open = Native.handles();
        numbers = LarderLongTable.builder().open();
        texts = LarderTable.builder(Codec.STRING, Codec.STRING).open();
    }

    @AfterEach
    void close() {
        numbers.close();
        texts.close();
        assertEquals(open, Native.handles());
    }

    /** Runs it on a thread of its own, and waits for that. */
    private static void elsewhere(Runnable work) {
        AtomicReference<Throwable> wrong = new AtomicReference<>();
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (Throwable e) {
                wrong.set(e);
            }
        });
        thread.start();
        try {
            thread.join();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
        if (wrong.get() != null) {
            throw new AssertionError(wrong.get());
        }
    }

    @Test
    void writes_of_several_tables_take_effect_together() {
        numbers.set(1, 10);
        String result = LarderTransaction.on(numbers, texts).call(views -> {
            LarderView<Long, Long> longs = views.of(numbers);
            LarderView<String, String> others = views.of(texts);
            assertEquals(10L, longs.get(1L));
            assertEquals(13, longs.addAndGet(1L, 3));
            longs.set(2L, 20L);
            assertNull(others.put("a", "x"));
            assertEquals("x", others.put("a", "y"));
            others.putAll(Map.of("b", "1", "c", "2"));
            assertEquals("1", others.remove("b"));
            assertEquals("2", others.merge("c", "3", (a, b) -> a));
            // Nobody else sees any of it yet.
            assertEquals(10, numbers.get(1));
            assertEquals(1, numbers.size());
            assertTrue(texts.isEmpty());
            // The view is the whole map.
            assertEquals(Map.of(1L, 13L, 2L, 20L), longs);
            assertEquals(List.of("c", "a"), List.copyOf(others.descendingKeySet()));
            assertEquals(2L, longs.lastKey());
            assertEquals(OptionalLong.of(2), longs.rank(2L));
            assertEquals(List.of(Map.entry(2L, 20L)), longs.select("[{{2,'_'},[],['$_']}]"));
            assertEquals(1, longs.selectDelete("[{{2,'_'},[],[true]}]"));
            assertEquals(Map.of(1L, 13L), longs.tailMap(0L));
            return "done";
        });
        assertEquals("done", result);
        assertEquals(Map.of(1L, 13L), numbers);
        assertEquals(Map.of("a", "y", "c", "2"), texts);
    }

    @Test
    void what_the_body_throws_comes_out_and_nothing_has_changed() {
        numbers.set(1, 1);
        IOException thrown = new IOException("no more");
        LarderTransaction on = LarderTransaction.on(numbers);
        assertSame(thrown, assertThrows(IOException.class, () -> on.run(views -> {
            views.of(numbers).set(1L, 2L);
            views.of(numbers).remove(1L);
            throw thrown;
        })));
        assertThrows(StackOverflowError.class, () -> LarderTransaction.on(numbers).run(views -> {
            views.of(numbers).set(1L, 2L);
            throw new StackOverflowError();
        }));
        assertEquals(Map.of(1L, 1L), numbers);
    }

    @Test
    void a_view_is_over_with_its_attempt() {
        numbers.set(1, 1);
        List<LarderViews> old = new ArrayList<>();
        List<LarderView<Long, Long>> views = new ArrayList<>();
        List<Iterator<Long>> iterators = new ArrayList<>();
        LarderTransaction.on(numbers).run(all -> {
            old.add(all);
            LarderView<Long, Long> view = all.of(numbers);
            views.add(view);
            iterators.add(view.keySet().iterator());
            long value = view.get(1L);
            if (views.size() == 1) {
                elsewhere(() -> numbers.addAndGet(1, 10));
            } else {
                assertThrows(IllegalStateException.class, () -> views.get(0).get(1L));
            }
            view.put(1L, value + 1);
        });
        assertEquals(2, views.size());
        assertNotSame(views.get(0), views.get(1));
        assertEquals(12, numbers.get(1));
        LarderView<Long, Long> last = views.get(1);
        ConcurrentNavigableMap<Long, Long> part = last.tailMap(0L);
        List<Executable> calls = List.of(
                () -> last.get(1L),
                () -> last.put(1L, 1L),
                () -> last.set(1L, 1L),
                () -> last.addAndGet(1L, 1),
                () -> last.remove(1L),
                () -> last.putAll(Map.of(1L, 1L)),
                () -> last.rank(1L),
                () -> last.select("[]"),
                last::size,
                last::clear,
                last::firstEntry,
                () -> part.put(1L, 1L),
                part::isEmpty,
                iterators.get(1)::remove,
                () -> old.get(1).of(numbers));
        assertEquals(1L, iterators.get(1).next());
        for (int i = 0; i < calls.size(); i++) {
            assertThrows(IllegalStateException.class, calls.get(i), "call " + i);
        }
        assertEquals(Map.of(1L, 12L), numbers);
    }

    /** Two threads move money between few accounts, and one sums up, all in transactions. */
    @Test
    void transfers_keep_the_sum() throws InterruptedException {
        int accounts = 5, each = 1_000, rounds = 2_000;
        LarderLongTable other = LarderLongTable.builder().open();
        for (long i = 0; i < accounts; i++) {
            numbers.set(i, each);
            other.set(i, each);
        }
        LarderTransaction both = LarderTransaction.on(numbers, other);
        AtomicReference<Throwable> wrong = new AtomicReference<>();
        AtomicInteger calls = new AtomicInteger();
        List<Thread> threads = new ArrayList<>();
        for (int t = 0; t < 3; t++) {
            int me = t;
            Thread thread = new Thread(() -> {
                SplittableRandom random = new SplittableRandom(me);
                try {
                    for (int i = 0; i < rounds && wrong.get() == null; i++) {
                        long from = random.nextInt(accounts), to = random.nextInt(accounts);
                        long sum = both.call(views -> {
                            calls.incrementAndGet();
                            LarderView<Long, Long> a = views.of(numbers), b = views.of(other);
                            if (me < 2) {
                                a.put(from, a.get(from) - 1);
                                b.put(to, b.get(to) + 1);
                                return 2L * accounts * each;
                            }
                            return a.values().stream().mapToLong(n -> n).sum()
                                    + b.values().stream().mapToLong(n -> n).sum();
                        });
                        assertEquals(2L * accounts * each, sum);
                    }
                } catch (Throwable e) {
                    wrong.compareAndSet(null, e);
                }
            });
            threads.add(thread);
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        if (wrong.get() != null) {
            throw new AssertionError(wrong.get());
        }
        // Each of the two has moved one as often as it was asked to.
        assertEquals(
                (long) accounts * each - 2L * rounds,
                numbers.values().stream().mapToLong(n -> n).sum());
        assertEquals(
                (long) accounts * each + 2L * rounds,
                other.values().stream().mapToLong(n -> n).sum());
        assertTrue(calls.get() >= 3 * rounds);
        other.close();
    }

    @Test
    void there_are_no_phantoms_and_no_write_skew() {
        for (long key : new long[] {10, 11, 30}) {
            numbers.set(key, 1);
        }
        AtomicInteger attempts = new AtomicInteger();
        // Puts how many rows there are from 10 to 19, beside which another puts one more.
        LarderTransaction.on(numbers).run(views -> {
            LarderView<Long, Long> view = views.of(numbers);
            long count = view.subMap(10L, 20L).entrySet().stream().count();
            if (attempts.incrementAndGet() == 1) {
                elsewhere(() -> numbers.set(15, 1));
            }
            view.put(100L, count);
        });
        assertEquals(2, attempts.get());
        assertEquals(3, numbers.get(100));
        // An absent key counts as read.
        attempts.set(0);
        LarderTransaction.on(numbers).run(views -> {
            boolean isThere = views.of(numbers).containsKey(50L);
            if (attempts.incrementAndGet() == 1) {
                elsewhere(() -> numbers.set(50, 1));
            }
            views.of(numbers).put(100L, isThere ? 1L : 0L);
        });
        assertEquals(2, attempts.get());
        assertEquals(1, numbers.get(100));
        // What is after the end of a range does not.
        for (long key = 0; key < 1_000; key++) {
            numbers.putIfAbsent(key, 1);
        }
        attempts.set(0);
        LarderTransaction.on(numbers).retries(5).run(views -> {
            long count = views.of(numbers).subMap(10L, 20L).entrySet().stream().count();
            attempts.incrementAndGet();
            elsewhere(() -> numbers.addAndGet(900, 1));
            views.of(numbers).put(100L, count);
        });
        assertEquals(1, attempts.get());
        assertEquals(10, numbers.get(100));
        // Nor does another key.
        attempts.set(0);
        LarderTransaction.on(numbers).retries(5).run(views -> {
            long value = views.of(numbers).get(10L);
            attempts.incrementAndGet();
            elsewhere(() -> numbers.addAndGet(11, 1));
            views.of(numbers).put(100L, value);
        });
        assertEquals(1, attempts.get());
    }

    /** Whether there are rows is known by the first ones, whatever is asked: others may change. */
    @Test
    void few_rows_are_read_to_know_that_there_are_some() {
        for (long key = 0; key < 1_000; key++) {
            numbers.set(key, 1);
        }
        AtomicInteger attempts = new AtomicInteger();
        LarderTransaction.on(numbers).retries(5).run(views -> {
            LarderLongView view = views.of(numbers);
            assertFalse(view.isEmpty() || view.keySet().isEmpty());
            assertFalse(view.values().isEmpty() || view.entrySet().isEmpty());
            attempts.incrementAndGet();
            elsewhere(() -> numbers.addAndGet(900, 1));
            view.set(1_000, 1);
        });
        assertEquals(1, attempts.get());
    }

    /** What is removed by its key is all that is read, whatever else others change. */
    @Test
    void few_rows_are_read_to_remove_some() {
        for (long key = 0; key < 1_000; key++) {
            numbers.set(key, 1);
        }
        AtomicInteger attempts = new AtomicInteger();
        LarderTransaction.on(numbers).retries(5).run(views -> {
            LarderLongView view = views.of(numbers);
            assertTrue(view.entrySet().removeAll(Map.of(1L, 1L, 2L, 1L).entrySet()));
            assertFalse(view.entrySet().removeAll(List.of(Map.entry(3L, 9L), "no row")));
            assertTrue(view.keySet().removeAll(List.of(4L, 5_000L)));
            assertFalse(view.tailMap(500L).keySet().removeAll(List.of(6L)));
            attempts.incrementAndGet();
            elsewhere(() -> numbers.addAndGet(900, 1));
        });
        assertEquals(1, attempts.get());
        assertEquals(997, numbers.size());
    }

    @Test
    void retries_and_times_are_limited() {
        AtomicInteger attempts = new AtomicInteger();
        LarderTransaction.Body<Object, RuntimeException> loses = views -> {
            views.of(numbers).get(1L);
            elsewhere(() -> numbers.addAndGet(1, 1));
            attempts.incrementAndGet();
            return views.of(numbers).put(2L, 1L);
        };
        LarderTransaction on = LarderTransaction.on(numbers);
        String text =
                assertThrows(ConflictException.class, () -> on.retries(3).call(loses)).getMessage();
        assertTrue(text.contains("4 attempts"), text);
        assertEquals(4, attempts.get());
        text =
                assertThrows(
                                ConflictException.class,
                                () -> on.timeout(Duration.ofMillis(30)).call(loses))
                        .getMessage();
        assertTrue(text.contains("PT0.03S"), text);
        attempts.set(0);
        text = assertThrows(ConflictException.class, () -> on.call(views -> {
            loses.call(views);
            Thread.currentThread().interrupt();
            return null;
        })).getMessage();
        assertTrue(Thread.interrupted());
        assertTrue(text.contains("interrupted"), text);
        assertEquals(1, attempts.get());
        assertFalse(numbers.containsKey(2));
    }

    @Test
    void wrong_use_is_refused() {
        assertThrows(IllegalArgumentException.class, () -> LarderTransaction.on());
        assertThrows(NullPointerException.class, () -> LarderTransaction.on(numbers, null));
        String text =
                assertThrows(
                                IllegalArgumentException.class,
                                () -> LarderTransaction.on(numbers, texts, numbers))
                        .getMessage();
        assertTrue(text.contains("1 and 3"), text);
        LarderTransaction on = LarderTransaction.on(numbers);
        assertThrows(IllegalArgumentException.class, () -> on.timeout(Duration.ofMillis(-1)));
        assertThrows(IllegalArgumentException.class, () -> on.retries(-1));
        assertThrows(NullPointerException.class, () -> on.call(null));
        on.run(views -> {
            assertThrows(IllegalArgumentException.class, () -> views.of(texts));
            assertThrows(IllegalStateException.class, () -> on.run(more -> {}));
            views.of(numbers).set(1L, 1L);
        });
        assertEquals(1, numbers.get(1));
        // A table that is closed in the body: nothing of the others has changed.
        LarderLongTable closed = LarderLongTable.builder().open();
        LarderTransaction both = LarderTransaction.on(numbers, closed);
        assertThrows(IllegalStateException.class, () -> both.run(views -> {
            views.of(numbers).set(1L, 2L);
            views.of(closed).set(1L, 2L);
            closed.close();
        }));
        assertEquals(1, numbers.get(1));
        assertThrows(IllegalStateException.class, () -> both.run(views -> {}));
        assertThrows(
                IllegalStateException.class, () -> new Operations().put(closed, 1L, 1L).commit());
    }

    /** The methods with longs of a view do what those of a table do, and are of the transaction. */
    @Test
    void views_of_longs() {
        Random random = new Random(11);
        TreeMap<Long, Long> map = new TreeMap<>();
        try (LarderLongTable table = LarderLongTable.builder(-1).open()) {
            LarderTransaction on = LarderTransaction.on(table);
            for (int i = 0; i < 300; i++) {
                boolean fails = random.nextInt(4) == 0;
                TreeMap<Long, Long> then = new TreeMap<>(map);
                LarderTransaction.Action<ArithmeticException> body = views -> {
                    LarderLongView view = views.of(table);
                    for (int call = 0; call < 20; call++) {
                        compare(view, then, random);
                    }
                    List<Long> met = new ArrayList<>();
                    view.scan(5, 15, (key, value) -> met.add(key));
                    assertEquals(new ArrayList<>(then.subMap(5L, true, 15L, true).keySet()), met);
                    assertEquals(then, view);
                    assertEquals(map, table);
                    if (fails) {
                        throw new ArithmeticException();
                    }
                };
                if (fails) {
                    assertThrows(ArithmeticException.class, () -> on.run(body));
                } else {
                    on.run(body);
                    map.clear();
                    map.putAll(then);
                }
                assertEquals(map, table);
            }
        }
    }

    private static void compare(LarderLongView view, TreeMap<Long, Long> map, Random random) {
        long key = random.nextInt(20);
        long value = random.nextInt(5);
        switch (random.nextInt(9)) {
            case 0 -> assertEquals(or(map.put(key, value)), view.put(key, value));
            case 1 -> assertEquals(or(map.get(key)), view.get(key));
            case 2 -> assertEquals(map.get(key), view.get((Object) key));
            case 3 -> assertEquals(map.getOrDefault(key, 7L), view.get(key, 7));
            case 4 -> assertEquals(or(map.remove(key)), view.remove(key));
            case 5 -> assertEquals(map.merge(key, value, Long::sum), view.addAndGet(key, value));
            case 6 -> assertEquals(or(map.putIfAbsent(key, value)), view.putIfAbsent(key, value));
            case 7 -> {
                assertEquals(map.replace(key, value, 3L), view.compareAndSet(key, value, 3));
                assertEquals(map.containsKey(key), view.containsKey(key));
            }
            default -> {
                view.set(key, value);
                map.put(key, value);
            }
        }
    }

    private static long or(Long value) {
        return value == null ? -1 : value;
    }

    /** Views last until their commit begins: what another thread writes before it has effect. */
    @Test
    void views_end_when_their_commit_begins() throws Exception {
        AtomicReference<LarderLongView> left = new AtomicReference<>();
        AtomicInteger attempts = new AtomicInteger();
        numbers.set(5, 0);
        LarderTransaction.on(numbers).run(views -> {
            LarderLongView old = left.getAndSet(views.of(numbers));
            if (old != null) {
                assertThrows(IllegalStateException.class, () -> old.get(5));
            }
            long seen = left.get().get(5);
            elsewhere(() -> left.get().set(6, seen));
            assertEquals(seen, left.get().get(6));
            if (attempts.incrementAndGet() == 1) {
                elsewhere(() -> numbers.set(5, 1));
            }
        });
        assertEquals(2, attempts.get());
        assertEquals(1, numbers.get(6));
        assertThrows(IllegalStateException.class, () -> left.get().get(5));
        assertThrows(IllegalStateException.class, () -> left.get().scan(0, 9, (key, value) -> {}));
    }

    @Test
    void what_a_transaction_writes_has_the_tables_time() {
        Duration ttl = Duration.ofHours(1);
        try (LarderLongTable table = LarderLongTable.builder().ttl(ttl).open()) {
            table.putFor(1L, 1L, Duration.ofDays(9));
            LarderTransaction.on(table).run(views -> views.of(table).set(1, 2));
            Duration left = table.timeLeft(1L);
            assertTrue(left.compareTo(ttl) <= 0 && !left.isZero(), left::toString);
        }
    }

    /** Sums of a list of operations: as those of the table, and each sees those before it. */
    @Test
    void operations_add() {
        numbers.set(1, Long.MAX_VALUE);
        texts.put("a", "no number");
        Operations sums = new Operations()
                .add(numbers, 1L, 1)
                .add(numbers, 2L, 5)
                .check(numbers, 2L, 5L)
                .addIfPresent(numbers, 2L, -7)
                .add(numbers, 2L, 1)
                .remove(numbers, 1L)
                .add(numbers, 1L, 3);
        assertEquals(OptionalInt.empty(), sums.commit());
        assertEquals(Map.of(1L, 3L, 2L, -1L), numbers);
        // The third is about a row that is no longer 5 then.
        assertEquals(OptionalInt.of(3), sums.commit());
        assertEquals(Map.of(1L, 3L, 2L, -1L), numbers);
        numbers.set(1, Long.MAX_VALUE);
        assertEquals(OptionalInt.empty(), new Operations().add(numbers, 1L, 2).commit());
        assertEquals(Long.MIN_VALUE + 1, numbers.get(1));
        assertEquals(
                OptionalInt.of(2),
                new Operations().add(numbers, 1L, 1).addIfPresent(numbers, 9L, 1).commit());
        assertFalse(numbers.containsKey(9));
        // A sum in a table of texts is refused before the list is committed.
        Operations begun = new Operations();
        String text =
                assertThrows(LarderException.class, () -> begun.add(texts, "a", 1)).getMessage();
        assertTrue(text.contains("bytes"), text);
        assertEquals(OptionalInt.empty(), begun.add(numbers, 1L, 0).commit());
        assertEquals(Long.MIN_VALUE + 1, numbers.get(1));
        assertEquals("no number", texts.get("a"));
        assertThrows(NullPointerException.class, () -> new Operations().add(null, 1L, 1));
        assertThrows(NullPointerException.class, () -> new Operations().add(numbers, null, 1));
    }

    /** No sum is lost where lists race, and all of a list is seen at once. */
    @Test
    void sums_of_lists_race() throws Exception {
        int each = 2_000;
        Operations transfer = new Operations().add(numbers, 1L, -1).add(numbers, 2L, 1);
        Thread other = new Thread(() -> {
            Operations back = new Operations().add(numbers, 2L, 2).add(numbers, 1L, -2);
            for (int i = 0; i < each; i++) {
                back.commit();
            }
        });
        other.start();
        for (int i = 0; i < each; i++) {
            transfer.commit();
            try (LarderSnapshot<Long, Long> now = numbers.snapshot()) {
                assertEquals(0L, now.get(1L) + now.get(2L));
            }
        }
        other.join();
        assertEquals(Map.of(1L, -3L * each, 2L, 3L * each), numbers);
    }

    @Test
    void a_full_table_refuses_a_transaction_as_a_whole() {
        LarderLongTable small = LarderLongTable.builder().maxSize(2).open();
        small.set(1, 1);
        assertThrows(LimitException.class, () -> LarderTransaction.on(numbers, small).run(views -> {
            views.of(numbers).set(1L, 1L);
            views.of(small).set(2L, 2L);
            views.of(small).set(3L, 3L);
        }));
        assertThrows(LimitException.class, () -> new Operations()
                .put(numbers, 1L, 1L)
                .put(small, 2L, 2L)
                .put(small, 3L, 3L)
                .commit());
        assertTrue(numbers.isEmpty());
        assertEquals(Map.of(1L, 1L), small);
        small.close();
    }

    @Test
    void operations_take_effect_together_or_not_at_all() {
        numbers.set(1, 3);
        Operations order = new Operations()
                .check(numbers, 1L, 3L)
                .put(numbers, 1L, 2L)
                .checkAbsent(texts, "b")
                .putIfAbsent(texts, "a", "pears")
                .remove(numbers, 9L);
        assertEquals(OptionalInt.empty(), order.commit());
        assertEquals(OptionalInt.of(1), order.commit());
        numbers.set(1, 3);
        assertEquals(OptionalInt.of(4), order.commit());
        texts.remove("a");
        texts.put("b", "");
        assertEquals(OptionalInt.of(3), order.commit());
        assertEquals(3, numbers.get(1));
        assertEquals(Map.of("b", ""), texts);
        // Each sees what those before it do.
        assertEquals(OptionalInt.empty(), new Operations()
                .remove(texts, "b")
                .putIfAbsent(texts, "b", "new")
                .check(texts, "b", "new")
                .commit());
        assertEquals("new", texts.get("b"));
        assertEquals(OptionalInt.empty(), new Operations().commit());
    }

    @Test
    void a_codec_that_fails_leaves_operations_as_they_were() {
        Codec<String> picky = new Codec<>() {
            @Override
            public void write(String value, Output out) {
                out.put(1);
                if (value.isEmpty()) {
                    throw new IllegalArgumentException("empty");
                }
                Codec.STRING.write(value, out);
            }

            @Override
            public String read(Input in) {
                in.get();
                return Codec.STRING.read(in);
            }
        };
        try (LarderTable<Long, String> table = LarderTable.builder(Codec.LONG, picky).open()) {
            // The table isn't in the list afterwards, so the list can do without it.
            Operations without = new Operations();
            try (LarderTable<Long, String> closed = LarderTable.builder(Codec.LONG, picky).open()) {
                assertThrows(IllegalArgumentException.class, () -> without.put(closed, 2L, ""));
            }
            assertEquals(OptionalInt.empty(), without.put(table, 9L, "nine").commit());
            assertEquals("nine", table.remove(9L));
            Operations list = new Operations().put(table, 1L, "one");
            assertThrows(IllegalArgumentException.class, () -> list.put(table, 2L, ""));
            assertThrows(NullPointerException.class, () -> list.put(table, 2L, null));
            assertThrows(NullPointerException.class, () -> list.remove(table, null));
            assertEquals(OptionalInt.empty(), list.put(table, 3L, "three").commit());
            assertEquals(Map.of(1L, "one", 3L, "three"), table);
        }
    }

    @Test
    void lifetimes_begin_at_the_commit() {
        Duration hour = Duration.ofHours(1);
        try (LarderTable<Long, String> table =
                LarderTable.builder(Codec.LONG, Codec.STRING).expiring().open()) {
            table.put(1L, "one");
            table.putFor(2L, "two", hour);
            LarderTransaction.on(table).run(views -> {
                LarderView<Long, String> view = views.of(table);
                assertTrue(view.expire(1L, hour));
                assertTrue(view.persist(2L));
                assertFalse(view.persist(4L));
                view.putFor(3L, "three", hour);
                assertEquals(hour, view.timeLeft(3L));
            });
            try (LarderSnapshot<Long, String> after = table.snapshot()) {
                table.clear();
                assertTrue(after.timeLeft(1L).compareTo(hour) <= 0);
                assertTrue(after.timeLeft(2L).compareTo(hour) > 0);
                assertTrue(after.timeLeft(3L).compareTo(hour) <= 0);
                assertNull(after.timeLeft(4L));
            }
        }
    }
}
