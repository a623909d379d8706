package larder;

import java.util.AbstractCollection;
import java.util.AbstractMap;
import java.util.Collection;
import java.util.Comparator;
import java.util.Iterator;
import java.util.Map;
import java.util.NavigableSet;
import java.util.NoSuchElementException;
import java.util.Objects;
import java.util.Set;
import java.util.Spliterator;
import java.util.Spliterators;
import java.util.concurrent.ConcurrentNavigableMap;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.function.Predicate;

/**
 * The rows of a range of keys, in either direction, as a {@link ConcurrentNavigableMap}. A table is
 * the range of all keys.
 *
 * <p>Operations on one key are atomic. {@code compute}, {@code merge} and their like are atomic,
 * too: their function is called again if somebody else changes the value meanwhile, so it should
 * have no side effects; it may use any table. Iterators are weakly consistent. Neither keys nor
 * values are null.
 */
class RangeView<K, V> extends AbstractMap<K, V> implements ConcurrentNavigableMap<K, V> {
    final Store<K, V> store;
    private final Store.Bounds<K> bounds;
    private final boolean down;

    RangeView(Store<K, V> store, Store.Bounds<K> bounds, boolean down) {
        this.store = store;
        this.bounds = bounds;
        this.down = down;
    }

    static <T> T checked(T value) {
        return Objects.requireNonNull(value, "neither keys nor values are null");
    }

    @SuppressWarnings("unchecked")
    private K asKey(Object key) {
        return (K) checked(key);
    }

    @SuppressWarnings("unchecked")
    private V asValue(Object value) {
        return (V) value;
    }

    // Bounds.

    private boolean isAboveLow(K key) {
        if (bounds.low() == null) {
            return true;
        }
        int order = store.compare(key, bounds.low());
        return order > 0 || order == 0 && bounds.lowIn();
    }

    private boolean isBelowHigh(K key) {
        if (bounds.high() == null) {
            return true;
        }
        int order = store.compare(key, bounds.high());
        return order < 0 || order == 0 && bounds.highIn();
    }

    private boolean isWithin(K key) {
        return isAboveLow(key) && isBelowHigh(key);
    }

    /** As {@link #isWithin}. The table isn't asked for other keys: so whether it is open is. */
    private boolean mayHave(K key) {
        if (isWithin(key)) {
            return true;
        }
        store.checkOpen();
        return false;
    }

    private K within(K key) {
        if (!isWithin(checked(key))) {
            throw new IllegalArgumentException("the key is outside the range of the view");
        }
        return key;
    }

    /** What of the range lies beyond a key, in the direction of the table. */
    private Store.Bounds<K> beyond(K key, boolean isIncluded, boolean below) {
        checked(key);
        if (below) {
            return isBelowHigh(key)
                    ? new Store.Bounds<>(bounds.low(), bounds.lowIn(), key, isIncluded)
                    : bounds;
        }
        return isAboveLow(key)
                ? new Store.Bounds<>(key, isIncluded, bounds.high(), bounds.highIn())
                : bounds;
    }

    /** The row next to a key: before or after it, as the view goes. */
    private Entry<K, V> near(K key, boolean isIncluded, boolean before) {
        boolean below = before != down;
        return store.first(beyond(key, isIncluded, below), below);
    }

    private Entry<K, V> edge(boolean last) {
        return store.first(bounds, last != down);
    }

    private static <K, V> K keyOf(Entry<K, V> entry) {
        return entry == null ? null : entry.getKey();
    }

    private static <K, V> K someKeyOf(Entry<K, V> entry) {
        if (entry == null) {
            throw new NoSuchElementException();
        }
        return entry.getKey();
    }

    // Operations by key.

    @Override
    public V get(Object key) {
        K k = asKey(key);
        return mayHave(k) ? store.get(k) : null;
    }

    @Override
    public V getOrDefault(Object key, V otherwise) {
        V value = get(key);
        return value == null ? otherwise : value;
    }

    @Override
    public boolean containsKey(Object key) {
        K k = asKey(key);
        return mayHave(k) && store.has(k);
    }

    @Override
    public boolean containsValue(Object value) {
        V wanted = asValue(checked(value));
        Iterator<V> all = values().iterator();
        while (all.hasNext()) {
            if (store.values.same(all.next(), wanted)) {
                return true;
            }
        }
        return false;
    }

    @Override
    public V put(K key, V value) {
        return store.put(within(key), checked(value));
    }

    /** Puts all rows at once; none of them if one is out of range. */
    @Override
    public void putAll(Map<? extends K, ? extends V> rows) {
        store.putAll(rows, this::within);
    }

    @Override
    public V putIfAbsent(K key, V value) {
        return store.putNew(within(key), checked(value));
    }

    @Override
    public V remove(Object key) {
        K k = asKey(key);
        return mayHave(k) ? store.remove(k) : null;
    }

    @Override
    public boolean remove(Object key, Object value) {
        K k = asKey(key);
        store.checkOpen();
        return value != null && isWithin(k) && swap(k, asValue(value), null);
    }

    @Override
    public boolean replace(K key, V old, V value) {
        within(key);
        checked(value);
        return swap(key, checked(old), value);
    }

    @Override
    public V replace(K key, V value) {
        within(key);
        checked(value);
        while (true) {
            Store.Stored<V> now = store.stored(key);
            if (now == null) {
                return null;
            }
            if (store.swap(key, now, value)) {
                return now.value();
            }
        }
    }

    /** Values that are the same may be stored in several ways: what is stored is exchanged. */
    private boolean swap(K key, V old, V value) {
        while (true) {
            Store.Stored<V> now = store.stored(key);
            if (now == null || !store.values.same(now.value(), old)) {
                return false;
            }
            if (store.swap(key, now, value)) {
                return true;
            }
        }
    }

    // Those of ConcurrentMap compare values, of which a type may have no notion.

    @Override
    public V compute(K key, BiFunction<? super K, ? super V, ? extends V> function) {
        Objects.requireNonNull(function, "function");
        return change(checked(key), old -> function.apply(key, old));
    }

    @Override
    public V computeIfPresent(K key, BiFunction<? super K, ? super V, ? extends V> function) {
        Objects.requireNonNull(function, "function");
        return change(checked(key), old -> old == null ? null : function.apply(key, old));
    }

    @Override
    public V merge(K key, V value, BiFunction<? super V, ? super V, ? extends V> function) {
        Objects.requireNonNull(function, "function");
        checked(value);
        return change(checked(key), old -> old == null ? value : function.apply(old, value));
    }

    @Override
    public void replaceAll(BiFunction<? super K, ? super V, ? extends V> function) {
        Objects.requireNonNull(function, "function");
        RowIterator<K, V, K> all = keyIterator();
        while (all.hasNext()) {
            all.next();
            replace(all.lastKey(), function);
        }
    }

    /** Replaces the value of a key as it is stored: the function may change the one it gets. */
    private void replace(byte[] key, BiFunction<? super K, ? super V, ? extends V> function) {
        boolean isDone = false;
        while (!isDone) {
            Store.Stored<V> now = store.storedAt(key);
            isDone = now == null
                    || store.swapAt(
                            key, now, checked(function.apply(store.key(key), now.value())));
        }
    }

    /** Puts what a function makes of the value under a key, where null stands for no row. */
    private V change(K key, Function<V, V> function) {
        while (true) {
            Store.Stored<V> now = mayHave(key) ? store.stored(key) : null;
            V next = function.apply(now == null ? null : now.value());
            if (now == null && next == null || store.swap(within(key), now, next)) {
                return next;
            }
        }
    }

    // The rows as a whole.

    /** The number of rows. That of a table is known; those of a part of it are counted. */
    public long mappingCount() {
        return store.count(bounds);
    }

    @Override
    public int size() {
        return (int) Math.min(mappingCount(), Integer.MAX_VALUE);
    }

    @Override
    public boolean isEmpty() {
        return edge(false) == null;
    }

    @Override
    public void clear() {
        if (bounds == Store.Bounds.ALL) {
            store.clear();
            return;
        }
        Iterator<K> all = keyIterator();
        while (all.hasNext()) {
            all.next();
            all.remove();
        }
    }

    /**
     * Removes the rows that a filter picks; whether there was one. If somebody has changed a value
     * since it was tested, the filter is called again: a row goes only as it was tested.
     */
    private boolean removeRows(Predicate<? super Entry<K, V>> filter) {
        boolean isChanged = false;
        RowIterator<K, V, Entry<K, V>> all = entryIterator();
        while (all.hasNext()) {
            Entry<K, V> row = all.next();
            isChanged |= filter.test(row) && removeTested(all.lastKey(), row.getValue(), filter);
        }
        return isChanged;
    }

    /**
     * Removes a row that a filter has picked, unless there is another one that it doesn't pick. The
     * key is as it is stored: the filter may change the one that it gets.
     */
    private boolean removeTested(byte[] key, V picked, Predicate<? super Entry<K, V>> filter) {
        V tested = picked;
        while (true) {
            Store.Stored<V> now = store.storedAt(key);
            if (now == null) {
                return false;
            }
            // A type may have no notion of values that are the same. Then they are tested again.
            if (!store.values.same(now.value(), tested)) {
                tested = now.value();
                if (!filter.test(new Store.Entry<>(store.key(key), tested))) {
                    return false;
                }
            }
            if (store.swapAt(key, now, null)) {
                return true;
            }
        }
    }

    // Neighbours.

    @Override
    public Entry<K, V> firstEntry() {
        return edge(false);
    }

    @Override
    public Entry<K, V> lastEntry() {
        return edge(true);
    }

    @Override
    public K firstKey() {
        return someKeyOf(edge(false));
    }

    @Override
    public K lastKey() {
        return someKeyOf(edge(true));
    }

    @Override
    public Entry<K, V> lowerEntry(K key) {
        return near(key, false, true);
    }

    @Override
    public K lowerKey(K key) {
        return keyOf(near(key, false, true));
    }

    @Override
    public Entry<K, V> floorEntry(K key) {
        return near(key, true, true);
    }

    @Override
    public K floorKey(K key) {
        return keyOf(near(key, true, true));
    }

    @Override
    public Entry<K, V> ceilingEntry(K key) {
        return near(key, true, false);
    }

    @Override
    public K ceilingKey(K key) {
        return keyOf(near(key, true, false));
    }

    @Override
    public Entry<K, V> higherEntry(K key) {
        return near(key, false, false);
    }

    @Override
    public K higherKey(K key) {
        return keyOf(near(key, false, false));
    }

    @Override
    public Entry<K, V> pollFirstEntry() {
        return poll(false);
    }

    @Override
    public Entry<K, V> pollLastEntry() {
        return poll(true);
    }

    /** Of several that poll at once each gets another row. */
    private Entry<K, V> poll(boolean last) {
        while (true) {
            Entry<K, V> edge = edge(last);
            if (edge == null) {
                return null;
            }
            V value = store.remove(edge.getKey());
            if (value != null) {
                return new Store.Entry<>(edge.getKey(), value);
            }
        }
    }

    // Other views.

    @Override
    @SuppressWarnings("unchecked")
    public Comparator<? super K> comparator() {
        if (!down) {
            return store.comparator;
        }
        return store.comparator == null
                ? (Comparator<? super K>) (Comparator<?>) java.util.Collections.reverseOrder()
                : store.comparator.reversed();
    }

    @Override
    public ConcurrentNavigableMap<K, V> descendingMap() {
        return new RangeView<>(store, bounds, !down);
    }

    @Override
    public ConcurrentNavigableMap<K, V> subMap(K from, boolean fromIn, K to, boolean toIn) {
        return part(checked(from), fromIn, checked(to), toIn);
    }

    @Override
    public ConcurrentNavigableMap<K, V> headMap(K to, boolean toIn) {
        return part(null, false, checked(to), toIn);
    }

    @Override
    public ConcurrentNavigableMap<K, V> tailMap(K from, boolean fromIn) {
        return part(checked(from), fromIn, null, false);
    }

    @Override
    public ConcurrentNavigableMap<K, V> subMap(K from, K to) {
        return subMap(from, true, to, false);
    }

    @Override
    public ConcurrentNavigableMap<K, V> headMap(K to) {
        return headMap(to, false);
    }

    @Override
    public ConcurrentNavigableMap<K, V> tailMap(K from) {
        return tailMap(from, true);
    }

    /** Null stands for the view's own end. */
    private RangeView<K, V> part(K from, boolean fromIn, K to, boolean toIn) {
        return down ? between(to, toIn, from, fromIn) : between(from, fromIn, to, toIn);
    }

    private RangeView<K, V> between(K low, boolean lowIn, K high, boolean highIn) {
        if (low != null && bounds.low() != null) {
            inRange(store.compare(low, bounds.low()), lowIn, bounds.lowIn());
        }
        if (high != null && bounds.high() != null) {
            inRange(store.compare(bounds.high(), high), highIn, bounds.highIn());
        }
        K newLow = low == null ? bounds.low() : store.copy(low);
        K newHigh = high == null ? bounds.high() : store.copy(high);
        if (newLow != null && newHigh != null && store.compare(newLow, newHigh) > 0) {
            throw new IllegalArgumentException(
                    "the range ends before it begins, or is outside the view's");
        }
        return new RangeView<>(
                store,
                new Store.Bounds<>(
                        newLow,
                        low == null ? bounds.lowIn() : lowIn,
                        newHigh,
                        high == null ? bounds.highIn() : highIn),
                down);
    }

    /** How a bound is to the view's own; one that is not part of its range may be the same. */
    private static void inRange(int order, boolean isIncluded, boolean viewIncludes) {
        if (order < 0 || order == 0 && isIncluded && !viewIncludes) {
            throw new IllegalArgumentException("the range reaches out of that of the view");
        }
    }

    @Override
    public NavigableSet<K> navigableKeySet() {
        return new KeyView<>(this);
    }

    @Override
    public NavigableSet<K> keySet() {
        return navigableKeySet();
    }

    @Override
    public NavigableSet<K> descendingKeySet() {
        return descendingMap().navigableKeySet();
    }

    RowIterator<K, V, K> keyIterator() {
        return new RowIterator<K, V, K>(store, bounds, down) {
            @Override
            K row(K key, V value) {
                return key;
            }
        };
    }

    private Iterator<V> valueIterator() {
        return new RowIterator<K, V, V>(store, bounds, down) {
            @Override
            V row(K key, V value) {
                return value;
            }
        };
    }

    private RowIterator<K, V, Entry<K, V>> entryIterator() {
        return new RowIterator<K, V, Entry<K, V>>(store, bounds, down) {
            @Override
            Entry<K, V> row(K key, V value) {
                return new Store.Entry<>(key, value);
            }
        };
    }

    /** The number of rows may change at any time: nothing promises one. */
    static <T> Spliterator<T> split(Iterator<T> all, int more) {
        int is = Spliterator.CONCURRENT | Spliterator.NONNULL | Spliterator.ORDERED | more;
        return Spliterators.spliteratorUnknownSize(all, is);
    }

    @Override
    public Collection<V> values() {
        return new Values();
    }

    @Override
    public Set<Map.Entry<K, V>> entrySet() {
        return new Entries();
    }

    /** The rows as a collection, whose removals may happen beside those of others. */
    private abstract class Rows<T> extends AbstractCollection<T> {
        @Override
        public int size() {
            return RangeView.this.size();
        }

        @Override
        public boolean isEmpty() {
            return RangeView.this.isEmpty();
        }

        @Override
        public abstract boolean removeIf(Predicate<? super T> filter);

        @Override
        public boolean removeAll(Collection<?> unwanted) {
            Objects.requireNonNull(unwanted, "unwanted");
            return removeIf(unwanted::contains);
        }

        @Override
        public boolean retainAll(Collection<?> wanted) {
            Objects.requireNonNull(wanted, "wanted");
            return removeIf(row -> !wanted.contains(row));
        }

        @Override
        public void clear() {
            RangeView.this.clear();
        }
    }

    private final class Values extends Rows<V> {
        @Override
        public Iterator<V> iterator() {
            return valueIterator();
        }

        @Override
        public boolean contains(Object value) {
            return value != null && containsValue(value);
        }

        @Override
        public boolean remove(Object value) {
            if (value == null) {
                return false;
            }
            V wanted = asValue(value);
            Predicate<Entry<K, V>> isWanted = row -> store.values.same(row.getValue(), wanted);
            RowIterator<K, V, Entry<K, V>> all = entryIterator();
            while (all.hasNext()) {
                Entry<K, V> row = all.next();
                if (isWanted.test(row) && removeTested(all.lastKey(), row.getValue(), isWanted)) {
                    return true;
                }
            }
            return false;
        }

        @Override
        public boolean removeIf(Predicate<? super V> filter) {
            Objects.requireNonNull(filter, "filter");
            return removeRows(row -> filter.test(row.getValue()));
        }

        @Override
        public Spliterator<V> spliterator() {
            return split(valueIterator(), 0);
        }
    }

    private final class Entries extends Rows<Map.Entry<K, V>>
            implements Set<Map.Entry<K, V>> {
        @Override
        public Iterator<Map.Entry<K, V>> iterator() {
            return entryIterator();
        }

        @Override
        public boolean contains(Object o) {
            if (!(o instanceof Map.Entry<?, ?> row)
                    || row.getKey() == null
                    || row.getValue() == null) {
                return false;
            }
            V value = RangeView.this.get(row.getKey());
            return value != null && store.values.same(value, asValue(row.getValue()));
        }

        @Override
        public boolean remove(Object o) {
            return o instanceof Map.Entry<?, ?> row
                    && row.getKey() != null
                    && RangeView.this.remove(row.getKey(), row.getValue());
        }

        /** By their keys: other rows aren't read. */
        @Override
        public boolean removeAll(Collection<?> unwanted) {
            boolean isChanged = false;
            for (Object row : unwanted) {
                isChanged |= remove(row);
            }
            return isChanged;
        }

        @Override
        public boolean removeIf(Predicate<? super Map.Entry<K, V>> filter) {
            return removeRows(Objects.requireNonNull(filter, "filter"));
        }

        // As every Set has them.

        @Override
        public boolean equals(Object o) {
            if (o == this) {
                return true;
            }
            try {
                return o instanceof Set<?> other && other.size() == size() && containsAll(other);
            } catch (ClassCastException | NullPointerException e) {
                return false;
            }
        }

        @Override
        public int hashCode() {
            int sum = 0;
            for (Map.Entry<K, V> row : this) {
                sum += row.hashCode();
            }
            return sum;
        }

        @Override
        public Spliterator<Map.Entry<K, V>> spliterator() {
            return split(entryIterator(), Spliterator.DISTINCT);
        }
    }
}
