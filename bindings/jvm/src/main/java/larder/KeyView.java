package larder;

import java.util.AbstractSet;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NavigableSet;
import java.util.Objects;
import java.util.SortedSet;
import java.util.Spliterator;
import java.util.Spliterators;
import java.util.function.Consumer;

/** The keys of a view. */
final class KeyView<K, V> extends AbstractSet<K> implements NavigableSet<K> {
    private final RangeView<K, V> rows;

    KeyView(RangeView<K, V> rows) {
        this.rows = rows;
    }

    @Override
    public Iterator<K> iterator() {
        return rows.keyIterator();
    }

    /** In the order of {@link #comparator}, as that of each {@link SortedSet}. */
    @Override
    public Spliterator<K> spliterator() {
        int is = Spliterator.CONCURRENT | Spliterator.NONNULL | Spliterator.ORDERED
                | Spliterator.DISTINCT | Spliterator.SORTED;
        Iterator<K> all = iterator();
        return new Spliterators.AbstractSpliterator<>(Long.MAX_VALUE, is) {
            @Override
            public boolean tryAdvance(Consumer<? super K> action) {
                Objects.requireNonNull(action, "action");
                if (!all.hasNext()) {
                    return false;
                }
                action.accept(all.next());
                return true;
            }

            /** That of an array, which would say that it is SORTED in the order of Comparable. */
            @Override
            public Spliterator<K> trySplit() {
                Spliterator<K> array = super.trySplit();
                if (array == null || comparator() == null) {
                    return array;
                }
                List<K> keys = new ArrayList<>();
                array.forEachRemaining(keys::add);
                return Spliterators.spliterator(keys, is & ~Spliterator.SORTED);
            }

            @Override
            public Comparator<? super K> getComparator() {
                return comparator();
            }
        };
    }

    @Override
    public int size() {
        return rows.size();
    }

    @Override
    public boolean isEmpty() {
        return rows.isEmpty();
    }

    @Override
    public boolean contains(Object key) {
        return rows.containsKey(key);
    }

    @Override
    public boolean remove(Object key) {
        return rows.remove(key) != null;
    }

    /** As they are stored: what other collections take for equal need not be. No row is counted. */
    @Override
    public boolean removeAll(java.util.Collection<?> unwanted) {
        boolean isChanged = false;
        for (Object key : unwanted) {
            isChanged |= key != null && remove(key);
        }
        return isChanged;
    }

    @Override
    public void clear() {
        rows.clear();
    }

    @Override
    public Comparator<? super K> comparator() {
        return rows.comparator();
    }

    @Override
    public K first() {
        return rows.firstKey();
    }

    @Override
    public K last() {
        return rows.lastKey();
    }

    @Override
    public K lower(K key) {
        return rows.lowerKey(key);
    }

    @Override
    public K floor(K key) {
        return rows.floorKey(key);
    }

    @Override
    public K ceiling(K key) {
        return rows.ceilingKey(key);
    }

    @Override
    public K higher(K key) {
        return rows.higherKey(key);
    }

    @Override
    public K pollFirst() {
        return keyOf(rows.pollFirstEntry());
    }

    @Override
    public K pollLast() {
        return keyOf(rows.pollLastEntry());
    }

    private K keyOf(Map.Entry<K, V> row) {
        return row == null ? null : row.getKey();
    }

    @Override
    public NavigableSet<K> descendingSet() {
        return rows.descendingMap().navigableKeySet();
    }

    @Override
    public Iterator<K> descendingIterator() {
        return descendingSet().iterator();
    }

    @Override
    public NavigableSet<K> subSet(K from, boolean fromIn, K to, boolean toIn) {
        return rows.subMap(from, fromIn, to, toIn).navigableKeySet();
    }

    @Override
    public NavigableSet<K> headSet(K to, boolean toIn) {
        return rows.headMap(to, toIn).navigableKeySet();
    }

    @Override
    public NavigableSet<K> tailSet(K from, boolean fromIn) {
        return rows.tailMap(from, fromIn).navigableKeySet();
    }

    @Override
    public SortedSet<K> subSet(K from, K to) {
        return subSet(from, true, to, false);
    }

    @Override
    public SortedSet<K> headSet(K to) {
        return headSet(to, false);
    }

    @Override
    public SortedSet<K> tailSet(K from) {
        return tailSet(from, true);
    }
}
