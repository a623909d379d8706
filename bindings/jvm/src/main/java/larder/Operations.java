package larder;

import java.lang.ref.Reference;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.OptionalInt;
import java.util.function.Consumer;

/**
 * A list of operations on keys of some tables that take effect at one instant, if the conditions of
 * all hold, or not at all. Each sees what those before it do. Where the keys are known beforehand,
 * this does without a {@link LarderTransaction}, and is never run again because of others.
 *
 * <pre>{@code
 * OptionalInt refused = new Operations()
 *         .check(stock, "pears", 3L)
 *         .put(stock, "pears", 2L)
 *         .putIfAbsent(orders, 17L, "pears")
 *         .commit();
 * }</pre>
 *
 * <p>Keys and values are copied when they are added. A list may be committed any number of times.
 * One thread at a time may use it.
 */
public final class Operations {
    private static final int CHECK = 0;
    private static final int PUT = 1;
    private static final int PUT_NEW = 2;
    private static final int REMOVE = 3;
    private static final int ADD = 4;
    private static final int ADD_IF_PRESENT = 5;

    private final List<LarderTable<?, ?>> tables = new ArrayList<>();
    private final Output steps = new Output();
    private int count;

    /** A condition: this value is under the key, stored as the codec writes it. */
    public <K, V> Operations check(LarderTable<K, V> table, K key, V value) {
        RangeView.checked(value);
        return step(CHECK, table, key, steps -> steps.maybe(table.store.values, value));
    }

    /** A condition: there is no row under the key. */
    public <K, V> Operations checkAbsent(LarderTable<K, V> table, K key) {
        return step(CHECK, table, key, steps -> steps.maybe(table.store.values, null));
    }

    /** Puts a row, whether there is one or not. */
    public <K, V> Operations put(LarderTable<K, V> table, K key, V value) {
        RangeView.checked(value);
        return step(PUT, table, key, steps -> steps.item(table.store.values, value));
    }

    /** Puts a row, on condition that there is none under the key. */
    public <K, V> Operations putIfAbsent(LarderTable<K, V> table, K key, V value) {
        RangeView.checked(value);
        return step(PUT_NEW, table, key, steps -> steps.item(table.store.values, value));
    }

    /** Removes a row, whether there is one or not. */
    public <K, V> Operations remove(LarderTable<K, V> table, K key) {
        return step(REMOVE, table, key, steps -> {});
    }

    /**
     * Adds to the integer under a key, 0 where there is none, as {@link LarderTable#addAndGet}: the
     * sum wraps. If the value is no integer, {@link #commit} throws a {@link LarderException}.
     *
     * @throws LarderException if the codec of values reads bytes
     */
    public <K> Operations add(LarderTable<K, ?> table, K key, long increment) {
        return step(ADD, table, key, steps -> sum(table, increment, steps));
    }

    /** As {@link #add}, on condition that there is a row under the key. */
    public <K> Operations addIfPresent(LarderTable<K, ?> table, K key, long increment) {
        return step(ADD_IF_PRESENT, table, key, steps -> sum(table, increment, steps));
    }

    private static void sum(LarderTable<?, ?> table, long increment, Output steps) {
        steps.number(increment);
        steps.flag(table.store.sums());
    }

    /** If a codec throws, the caller gets the exception, and the list is unchanged. */
    private <K> Operations step(int kind, LarderTable<K, ?> table, K key, Consumer<Output> rest) {
        RangeView.checked(key);
        Objects.requireNonNull(table, "table");
        int length = steps.length();
        int known = tables.size();
        boolean isComplete = false;
        try {
            steps.number(indexOf(table));
            steps.flag(kind);
            steps.item(table.store.keys, key);
            rest.accept(steps);
            isComplete = true;
        } finally {
            if (!isComplete) {
                steps.cut(length);
                tables.subList(known, tables.size()).clear();
            }
        }
        count++;
        return this;
    }

    private int indexOf(LarderTable<?, ?> table) {
        for (int i = 0; i < tables.size(); i++) {
            if (tables.get(i) == table) {
                return i;
            }
        }
        tables.add(table);
        return tables.size() - 1;
    }

    /**
     * Does all of it at one instant, or nothing. No lookup, snapshot or transaction sees a part of
     * it. Within the body of a transaction it is no part of that.
     *
     * @return empty if it took effect; else the number, from 1, of the first operation whose
     *     condition did not hold, and nothing has changed
     * @throws LarderException if a value that is added to is no integer: nothing has changed
     * @throws LimitException if a table has no room, and evicts nothing: nothing has changed
     * @throws IllegalStateException if a table is closed: nothing has changed
     */
    public OptionalInt commit() {
        try (Scratch scratch = Scratch.take()) {
            Output request = scratch.request;
            request.number(tables.size());
            for (LarderTable<?, ?> table : tables) {
                request.number(table.store.id);
            }
            request.number(count);
            request.append(steps);
            int refused = (int) Native.commitOperations(request.bytes(), request.length());
            Reference.reachabilityFence(this);
            return refused == 0 ? OptionalInt.empty() : OptionalInt.of(refused);
        }
    }
}
