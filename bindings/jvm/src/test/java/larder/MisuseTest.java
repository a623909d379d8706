package larder;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Spliterator;
import java.util.concurrent.ConcurrentNavigableMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** Wrong use throws, and never ends the process. */
class MisuseTest {
    @Test
    void everything_after_close_throws() {
        LarderLongTable longs = LarderLongTable.builder().open();
        longs.set(1, 1);
        longs.set(2, 2);
        Iterator<Long> iterator = longs.keySet().iterator();
        ConcurrentNavigableMap<Long, Long> view = longs.tailMap(1L);
        // Rows of a page that was read before the close are not returned after it.
        Iterator<?> rows = longs.entrySet().iterator();
        Iterator<Long> part = view.values().iterator();
        Iterator<Long> down = longs.descendingKeySet().iterator();
        Spliterator<Long> split = longs.values().spliterator();
        assertEquals(1L, iterator.next());
        assertEquals(2L, down.next());
        assertTrue(rows.hasNext());
        longs.close();
        longs.close();
        List<Executable> calls = List.of(
                () -> longs.get(1),
                () -> longs.get(1, 2),
                () -> longs.set(1, 1),
                () -> longs.put(1, 1),
                () -> longs.putIfAbsent(1, 1),
                () -> longs.addAndGet(1, 1),
                () -> longs.compareAndSet(1, 1, 1),
                () -> longs.remove(1),
                () -> longs.containsKey(1),
                () -> longs.scan(0, 9, (key, value) -> {}),
                longs::size,
                longs::isEmpty,
                longs::clear,
                longs::memory,
                longs::snapshot,
                longs::firstEntry,
                () -> longs.nth(1),
                () -> longs.rank(1L),
                () -> longs.select("[]"),
                () -> longs.merge(1L, 1L, Long::sum),
                () -> longs.putAll(Map.of(1L, 1L)),
                () -> longs.putFor(1L, 1L, Duration.ZERO),
                () -> longs.entrySet().iterator(),
                view::size,
                () -> view.put(3L, 3L),
                // Of what can't be there the table need not be asked.
                () -> longs.scan(9, 0, (key, value) -> {}),
                () -> longs.remove(1L, null),
                () -> view.get(0L),
                () -> view.getOrDefault(0L, 1L),
                () -> view.containsKey(0L),
                () -> view.remove(0L),
                () -> view.remove(0L, 0L),
                () -> view.computeIfPresent(0L, (key, value) -> value),
                iterator::remove,
                iterator::next,
                iterator::hasNext,
                rows::next,
                rows::hasNext,
                part::next,
                part::hasNext,
                down::next,
                () -> down.forEachRemaining(key -> {}),
                () -> split.tryAdvance(value -> {}),
                () -> split.forEachRemaining(value -> {}));
        for (int i = 0; i < calls.size(); i++) {
            Executable call = calls.get(i);
            String text = assertThrows(IllegalStateException.class, call, "call " + i).getMessage();
            assertTrue(text.contains("closed"), text);
        }
        LarderBytesTable bytes = LarderBytesTable.builder().open();
        bytes.close();
        ByteBuffer buffer = ByteBuffer.allocateDirect(8);
        byte[] array = new byte[8];
        assertThrows(IllegalStateException.class, () -> bytes.get(array, array));
        assertThrows(IllegalStateException.class, () -> bytes.set(array, array));
        assertThrows(IllegalStateException.class, () -> bytes.get(buffer, buffer));
        assertThrows(IllegalStateException.class, () -> bytes.set(buffer, buffer));
        assertThrows(IllegalStateException.class, () -> bytes.delete(array));
    }

    /** A snapshot's iterators end with it, and not with its table. */
    @Test
    void iterators_of_a_closed_snapshot_throw() {
        LarderLongTable longs = LarderLongTable.builder().open();
        longs.set(1, 1);
        longs.set(2, 2);
        LarderSnapshot<Long, Long> snapshot = longs.snapshot();
        Iterator<Long> iterator = snapshot.keySet().iterator();
        longs.close();
        assertEquals(1L, iterator.next());
        snapshot.close();
        assertThrows(IllegalStateException.class, iterator::hasNext);
        assertThrows(IllegalStateException.class, iterator::next);
    }

    /** Wrong arguments throw as those of the JDK's map do: a key out of range comes first. */
    @Test
    void wrong_arguments_throw_as_in_the_jdk() {
        try (LarderLongTable longs = LarderLongTable.builder().open()) {
            ConcurrentNavigableMap<Long, Long> sut = longs;
            ConcurrentNavigableMap<Long, Long> oracle = new ConcurrentSkipListMap<>();
            sut.put(5L, 5L);
            oracle.put(5L, 5L);
            List<Consumer<ConcurrentNavigableMap<Long, Long>>> calls = new ArrayList<>();
            for (Long key : new Long[] {5L, 99L, null}) {
                for (Long value : new Long[] {5L, null}) {
                    calls.add(map -> map.put(key, value));
                    calls.add(map -> map.putIfAbsent(key, value));
                    calls.add(map -> map.replace(key, value));
                    calls.add(map -> map.replace(key, value, 5L));
                    calls.add(map -> map.replace(key, 5L, value));
                    calls.add(map -> map.replace(key, value, null));
                    calls.add(map -> map.remove(key, value));
                }
            }
            for (int i = 0; i < calls.size(); i++) {
                Consumer<ConcurrentNavigableMap<Long, Long>> call = calls.get(i);
                assertEquals(thrown(call, oracle), thrown(call, sut), "call " + i);
                assertEquals(
                        thrown(call, oracle.subMap(0L, 10L)),
                        thrown(call, sut.subMap(0L, 10L)),
                        "call " + i + " of a part");
                assertEquals(
                        thrown(call, oracle.descendingMap().tailMap(10L)),
                        thrown(call, sut.descendingMap().tailMap(10L)),
                        "call " + i + " of a part in reverse");
            }
        }
    }

    /** The class of what a call throws, or null. */
    private static Class<?> thrown(
            Consumer<ConcurrentNavigableMap<Long, Long>> call,
            ConcurrentNavigableMap<Long, Long> map) {
        try {
            call.accept(map);
            return null;
        } catch (RuntimeException e) {
            return e.getClass();
        }
    }

    @Test
    void numbers_that_are_none() {
        for (long id :
                new long[] {
                    0, 1, -1, 1L << 32, (1L << 32) | 5_000_000, Long.MAX_VALUE, Long.MIN_VALUE
                }) {
            LarderLongTable other = LarderLongTable.builder().open();
            if (id != other.store.id) {
                assertThrows(IllegalStateException.class, () -> Native.setLong(id, 1, 1));
                assertFalse(Native.close(id));
            }
            other.close();
        }
        LarderLongTable table = LarderLongTable.builder().open();
        byte[] bytes = {1, 2, 3};
        assertThrows(
                IllegalArgumentException.class, () -> Native.get(table.store.id, bytes, 3, bytes));
        assertThrows(RuntimeException.class, () -> Native.get(table.store.id, bytes, 4, bytes));
        assertThrows(RuntimeException.class, () -> Native.get(table.store.id, bytes, -1, bytes));
        assertThrows(RuntimeException.class, () -> Native.get(table.store.id, null, 3, bytes));
        assertThrows(RuntimeException.class, () -> Native.getDirect(
                table.store.id, 0, ByteBuffer.allocate(8), 0, 8,
                ByteBuffer.allocateDirect(8), 0, 8));
        assertThrows(RuntimeException.class, () -> Native.putDirect(
                table.store.id, 0, ByteBuffer.allocateDirect(8), 1, 8,
                ByteBuffer.allocateDirect(8), 0, 8));
        assertEquals(0, table.size());
        table.close();
    }

    @Test
    void a_snapshot_outlives_its_table() {
        LarderLongTable table = LarderLongTable.builder().open();
        table.set(1, 10);
        LarderSnapshot<Long, Long> snapshot = table.snapshot();
        table.close();
        assertEquals(Map.of(1L, 10L), snapshot);
        snapshot.close();
        assertThrows(IllegalStateException.class, () -> snapshot.get(1L));
    }

    @Test
    void functions_may_use_and_close_tables() {
        LarderLongTable table = LarderLongTable.builder().open();
        table.set(1, 1);
        table.compute(1L, (key, value) -> {
            table.set(2, 2);
            return table.get(2) + value;
        });
        assertEquals(3, table.get(1));
        assertThrows(IllegalStateException.class, () -> table.compute(1L, (key, value) -> {
            table.close();
            return 9L;
        }));
        LarderLongTable other = LarderLongTable.builder().open();
        for (long i = 0; i < 1000; i++) {
            other.set(i, i);
        }
        assertThrows(
                IllegalStateException.class, () -> other.forEach((key, value) -> other.close()));
        LarderLongTable third = LarderLongTable.builder().open();
        for (long i = 0; i < 1000; i++) {
            third.set(i, i);
        }
        assertThrows(
                IllegalStateException.class,
                () -> third.scan(0, 1000, (key, value) -> third.close()));
    }

    /** Many short races of a close with calls: each call does its work or throws. */
    @Test
    void close_races_with_calls() throws InterruptedException {
        AtomicReference<LarderLongTable> current = new AtomicReference<>(withRow());
        AtomicReference<Throwable> wrong = new AtomicReference<>();
        long end = System.nanoTime() + 3_000_000_000L;
        long[] refused = new long[3];
        List<Thread> threads = new ArrayList<>();
        for (int t = 0; t < refused.length; t++) {
            int me = t;
            Thread thread = new Thread(() -> {
                Random random = new Random(me);
                while (System.nanoTime() < end && wrong.get() == null) {
                    LarderLongTable table = current.get();
                    long key = random.nextInt(50);
                    try {
                        switch (random.nextInt(8)) {
                            case 0 -> table.set(key, key);
                            case 1 -> check(table.get(key, key) == key);
                            case 2 -> table.forEach((k, v) -> check(k.equals(v)));
                            case 3 -> check(table.putIfAbsent(key, key) >= 0);
                            case 4 -> table.remove(key);
                            case 5 -> table.putAll(Map.of(key, key, key + 1, key + 1));
                            case 6 -> {
                                try (LarderSnapshot<Long, Long> snapshot = table.snapshot()) {
                                    snapshot.forEach((k, v) -> check(k.equals(v)));
                                }
                            }
                            default -> {
                                // A row stays until the table is closed.
                                check(table.ceilingKey(key) != null);
                                for (int i = 0; i < 100; i++) {
                                    check(table.size() > 0 && table.memory() > 0);
                                }
                            }
                        }
                    } catch (IllegalStateException e) {
                        refused[me]++;
                    } catch (Throwable e) {
                        wrong.compareAndSet(null, e);
                    }
                }
            });
            threads.add(thread);
            thread.start();
        }
        long closed = 0;
        while (System.nanoTime() < end && wrong.get() == null) {
            LarderLongTable next = withRow();
            LarderLongTable old = current.getAndSet(next);
            if (closed % 3 == 0) {
                Thread closer = new Thread(old::close);
                closer.start();
                old.close();
                closer.join();
            } else {
                old.close();
            }
            closed++;
        }
        for (Thread thread : threads) {
            thread.join();
        }
        current.get().close();
        if (wrong.get() != null) {
            throw new AssertionError(wrong.get());
        }
        assertTrue(closed > 100, closed + " closed");
        assertTrue(refused[0] + refused[1] + refused[2] > 0, "no call met a closed table");
    }

    private static LarderLongTable withRow() {
        LarderLongTable table = LarderLongTable.builder().open();
        table.set(1000, 1000);
        return table;
    }

    private static void check(boolean holds) {
        if (!holds) {
            throw new AssertionError("a value that nobody put");
        }
    }
}
