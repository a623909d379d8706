package larder;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import java.util.function.LongConsumer;
import java.util.function.LongFunction;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/**
 * Two or three threads do one thing each, many times, on keys of their own round: what may come out
 * is listed.
 */
class RaceTest {
    private static final int ROUNDS = 20_000;
    private static LarderLongTable table;

    @BeforeAll
    static void open() {
        table = LarderLongTable.builder(-1).open();
    }

    @AfterAll
    static void close() {
        table.close();
    }

    /** Each actor gets the key of each round; outcomes are what the last function says of it. */
    private static void race(
            String allowed,
            LongConsumer before,
            List<LongFunction<Object>> actors,
            LongFunction<Object> after)
            throws Exception {
        int n = actors.size();
        Object[][] results = new Object[n][ROUNDS];
        for (long key = 0; key < ROUNDS; key++) {
            before.accept(key);
        }
        CyclicBarrier start = new CyclicBarrier(n);
        List<Thread> threads = new ArrayList<>();
        List<Throwable> wrong = new ArrayList<>();
        for (int a = 0; a < n; a++) {
            int me = a;
            Thread thread = new Thread(() -> {
                try {
                    for (int block = 0; block < ROUNDS; block += 500) {
                        start.await(30, TimeUnit.SECONDS);
                        for (int key = block; key < block + 500; key++) {
                            results[me][key] = actors.get(me).apply(key);
                        }
                    }
                } catch (Throwable e) {
                    synchronized (wrong) {
                        wrong.add(e);
                    }
                }
            });
            threads.add(thread);
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        assertEquals(List.of(), wrong);
        Map<String, Integer> outcomes = new HashMap<>();
        for (int key = 0; key < ROUNDS; key++) {
            List<String> outcome = new ArrayList<>();
            for (Object[] result : results) {
                outcome.add(String.valueOf(result[key]));
            }
            outcome.add(String.valueOf(after.apply(key)));
            outcomes.merge(String.join(" ", outcome), 1, Integer::sum);
        }
        Set<String> all = Set.of(allowed.split(", "));
        assertTrue(
                all.containsAll(outcomes.keySet()),
                () -> "came out: " + outcomes + ", allowed: " + all);
        table.clear();
    }

    @Test
    void one_of_two_puts_if_absent() throws Exception {
        race(
                "-1 1 1, 2 -1 2",
                key -> {},
                List.of(key -> table.putIfAbsent(key, 1), key -> table.putIfAbsent(key, 2)),
                table::get);
    }

    @Test
    void puts_see_one_another() throws Exception {
        race(
                "0 1 2, 2 0 1",
                key -> table.set(key, 0),
                List.of(key -> table.put(key, 1), key -> table.put(key, 2)),
                table::get);
    }

    @Test
    void one_of_three_swaps() throws Exception {
        race(
                "true false false 1, false true false 2, false false true 3",
                key -> table.set(key, 0),
                List.of(
                        key -> table.compareAndSet(key, 0, 1),
                        key -> table.compareAndSet(key, 0, 2),
                        key -> table.replace(key, 0L, 3L)),
                table::get);
    }

    @Test
    void no_sum_is_lost() throws Exception {
        race(
                "1 11 11, 11 10 11",
                key -> {},
                List.of(key -> table.addAndGet(key, 1), key -> table.addAndGet(key, 10)),
                table::get);
        race(
                "1 11 111 111, 1 111 101 111, 11 10 111 111, 111 10 110 111, 101 111 100 111,"
                        + " 111 110 100 111",
                key -> {},
                List.of(
                        key -> table.merge(key, 1L, Long::sum),
                        key -> table.compute(key, (k, v) -> v == null ? 10L : v + 10),
                        key -> table.addAndGet(key, 100)),
                table::get);
    }

    @Test
    void one_of_two_removes() throws Exception {
        race(
                "7 -1 -1, -1 7 -1",
                key -> table.set(key, 7),
                List.of(key -> table.remove(key), key -> table.remove(key)),
                table::get);
        race(
                "true null -1, false 7 -1",
                key -> table.set(key, 7),
                List.of(
                        key -> table.remove((Long) key, (Long) 7L),
                        key -> table.remove((Long) key)),
                table::get);
    }

    @Test
    void a_list_is_put_all_at_once() throws Exception {
        Function<Long, Map<Long, Long>> rows =
                key ->
                        LongStream.range(0, 3)
                                .boxed()
                                .collect(Collectors.toMap(n -> key * 4 + n, n -> 1L));
        race(
                "null 000 111, null 111 111",
                key -> {},
                List.of(
                        key -> {
                            table.putAll(rows.apply(key));
                            return null;
                        },
                        key -> {
                            try (LarderSnapshot<Long, Long> snapshot = table.snapshot()) {
                                return three(snapshot, key);
                            }
                        }),
                key -> three(table, key));
    }

    private static String three(Map<Long, Long> map, long key) {
        return LongStream.range(0, 3)
                .mapToObj(n -> String.valueOf(map.getOrDefault(key * 4 + n, 0L)))
                .collect(Collectors.joining());
    }

    @Test
    void what_is_polled_is_polled_once() throws Exception {
        for (long key = 0; key < ROUNDS; key++) {
            table.set(key, key);
        }
        List<List<Long>> polled = List.of(new ArrayList<>(), new ArrayList<>(), new ArrayList<>());
        List<Thread> threads = new ArrayList<>();
        for (List<Long> mine : polled) {
            Thread thread = new Thread(() -> {
                while (true) {
                    Map.Entry<Long, Long> row = table.pollFirstEntry();
                    if (row == null) {
                        return;
                    }
                    mine.add(row.getKey());
                }
            });
            threads.add(thread);
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        List<Long> all =
                polled.stream().flatMap(List::stream).sorted().collect(Collectors.toList());
        assertEquals(LongStream.range(0, ROUNDS).boxed().collect(Collectors.toList()), all);
        assertTrue(table.isEmpty());
    }

    /** A row that stays is visited once, whatever else comes and goes. */
    @Test
    void iterators_meet_what_stays() throws Exception {
        for (long key = 0; key < 10_000; key += 2) {
            table.set(key, key);
        }
        AtomicBoolean done = new AtomicBoolean();
        Thread writer = new Thread(() -> {
            long key = 1;
            while (!done.get()) {
                table.put(key, key);
                table.remove((key + 4_000) % 10_000);
                key = (key + 2) % 10_000;
                Thread.onSpinWait();
            }
        });
        writer.setDaemon(true);
        writer.start();
        for (int round = 0; round < 20; round++) {
            long last = -1;
            int stayed = 0;
            for (long key : table.keySet()) {
                assertTrue(key > last);
                last = key;
                stayed += key % 2 == 0 ? 1 : 0;
            }
            assertEquals(5_000, stayed);
        }
        done.set(true);
        writer.join();
        table.clear();
    }
}
