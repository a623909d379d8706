package larder;

import java.util.Iterator;
import java.util.NoSuchElementException;

/**
 * Iterates over the rows of a range, in pages: at first few rows, then more, unless they are long.
 * Nothing is locked between two pages; the next begins after the last key that was returned, as
 * that is stored. So it is weakly consistent: a row that stays in the table is returned once.
 */
abstract class RowIterator<K, V, T> implements Iterator<T> {
    private static final int FIRST_PAGE = 8;
    private static final int LARGEST_PAGE = 256;
    /** After a page of this many bytes, the next one has half as many rows. */
    private static final int LARGE_BYTES = 128 << 10;

    private final Store<K, V> store;
    private final boolean down;
    private final Store.Page page = new Store.Page();
    private final Store.Bounds<K> bounds;
    /** The last key of the page before, as it is stored. */
    private byte[] after;
    private int pageRows = FIRST_PAGE;
    private int next;
    private boolean isRemovable;

    RowIterator(Store<K, V> store, Store.Bounds<K> bounds, boolean down) {
        this.store = store;
        this.bounds = bounds;
        this.down = down;
        read();
    }

    private void read() {
        store.page(bounds, down, after, pageRows, page);
        next = 0;
        if (page.bytes < LARGE_BYTES) {
            pageRows = Math.min(2 * pageRows, LARGEST_PAGE);
        } else {
            pageRows = Math.max(1, pageRows / 2);
        }
    }

    @Override
    public boolean hasNext() {
        // The rows of a page were read before. After a close there are none of them.
        store.checkOpen();
        if (next == page.count && !page.isLast) {
            // If a codec throws, the page is overwritten in part. The next call reads it again.
            if (next > 0) {
                after = page.key(next - 1);
                page.count = 0;
                next = 0;
            }
            read();
        }
        return next < page.count;
    }

    @Override
    public T next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        T row = row(key(next), value(next));
        next++;
        isRemovable = true;
        return row;
    }

    @Override
    public void remove() {
        if (!isRemovable) {
            throw new IllegalStateException("next was not called");
        }
        store.removeAt(lastKey());
        isRemovable = false;
    }

    /** The key that was returned last, as it is stored. The caller may have changed its own. */
    byte[] lastKey() {
        return next > 0 ? page.key(next - 1) : after;
    }

    @SuppressWarnings("unchecked")
    private K key(int i) {
        return (K) page.rows[2 * i];
    }

    @SuppressWarnings("unchecked")
    private V value(int i) {
        return (V) page.rows[2 * i + 1];
    }

    abstract T row(K key, V value);
}
