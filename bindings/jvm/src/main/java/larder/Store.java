package larder;

import java.io.IOException;
import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileSystems;
import java.nio.file.Path;
import java.nio.file.ProviderMismatchException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;

/**
 * A table or snapshot with its codecs: each operation once. All views and iterators of a table
 * refer to it, and the table is closed when nothing does.
 *
 * <p>Each method keeps the store reachable until its native call has returned, by {@link #kept}.
 * Else the cleaner might close the table under it.
 */
sealed class Store<K, V> permits LongStore, BytesStore {
    static final Cleaner CLEANER = Cleaner.create();

    final long id;
    final Codec<K> keys;
    final Codec<V> values;
    final Comparator<? super K> comparator;
    private final Cleaner.Cleanable cleanable;
    /** Set by {@link #close}. Volatile: calls that begin after a close, on any thread, see it. */
    private volatile boolean isClosed;

    <X extends Exception> Store(Owned.Opening<X> opening, Codec<K> keys, Codec<V> values) throws X {
        this.keys = keys;
        this.values = values;
        this.comparator = keys.comparator();
        Owned owned = new Owned();
        this.cleanable = CLEANER.register(this, owned);
        this.id = owned.open(opening);
    }

    /** A transaction's view, which ends with the transaction. */
    Store(Store<K, V> table, long view) {
        this.id = view;
        this.keys = table.keys;
        this.values = table.values;
        this.comparator = table.comparator;
        this.cleanable = null;
    }

    Store<K, V> view(long view) {
        return new Store<>(this, view);
    }

    void close() {
        isClosed = true;
        cleanable.clean();
    }

    /** For what doesn't ask the native library, which checks it in each call. */
    final void checkOpen() {
        if (isClosed) {
            throw new IllegalStateException("the table is closed");
        }
    }

    Store<K, V> snapshot() {
        return kept(new Store<>(() -> Native.snapshot(id), keys, values));
    }

    /**
     * The result of a native call. The store is reachable until here, whose argument was evaluated
     * before: {@code kept(Native.size(id))}. A call that throws has returned, too.
     */
    final long kept(long result) {
        Reference.reachabilityFence(this);
        return result;
    }

    final int kept(int result) {
        Reference.reachabilityFence(this);
        return result;
    }

    final boolean kept(boolean result) {
        Reference.reachabilityFence(this);
        return result;
    }

    final <R> R kept(R result) {
        Reference.reachabilityFence(this);
        return result;
    }

    @SuppressWarnings("unchecked")
    int compare(K a, K b) {
        return comparator != null
                ? comparator.compare(a, b)
                : ((Comparable<? super K>) a).compareTo(b);
    }

    // Operations by key.

    private interface Rows {
        byte[] call(long id, byte[] request, int length, byte[] offered);
    }

    private interface Number {
        long call(long id, byte[] request, int length);
    }

    private interface Whether {
        boolean call(long id, byte[] request, int length);
    }

    private interface Write {
        void to(Output request);
    }

    /**
     * The reply to the request that was written to a scratch; null for none. It can be read while
     * the scratch is the caller's.
     */
    private Input ask(Rows method, Scratch scratch) {
        Output request = scratch.request;
        byte[] answer = kept(method.call(id, request.bytes(), request.length(), scratch.reply));
        return answer == null ? null : scratch.read(answer);
    }

    private boolean whether(Whether method, Write write) {
        try (Scratch scratch = Scratch.take()) {
            Output request = scratch.request;
            write.to(request);
            return kept(method.call(id, request.bytes(), request.length()));
        }
    }

    private long number(Number method, Write write) {
        try (Scratch scratch = Scratch.take()) {
            Output request = scratch.request;
            write.to(request);
            return kept(method.call(id, request.bytes(), request.length()));
        }
    }

    /** The value in the reply of a method that takes a key and, unless it is null, a value. */
    private V value(Rows method, K key, V value) {
        try (Scratch scratch = Scratch.take()) {
            scratch.request.item(keys, key);
            if (value != null) {
                scratch.request.item(values, value);
            }
            Input reply = ask(method, scratch);
            return reply == null ? null : reply.item(values);
        }
    }

    /** A row in a reply. */
    private Entry<K, V> row(Input reply) {
        return new Entry<>(reply.item(keys), reply.item(values));
    }

    V get(K key) {
        return value(Native::get, key, null);
    }

    V put(K key, V value) {
        return value(Native::exchange, key, value);
    }

    V putNew(K key, V value) {
        return value(Native::putNew, key, value);
    }

    V remove(K key) {
        return value(Native::remove, key, null);
    }

    boolean has(K key) {
        return whether(Native::has, request -> request.item(keys, key));
    }

    void set(K key, V value) {
        whether(Native::put, request -> {
            request.item(keys, key);
            request.item(values, value);
        });
    }

    /**
     * A value, and the item that is stored. A codec need not write a value that it has read as it
     * is stored, so what is exchanged is the item.
     */
    record Stored<V>(V value, byte[] item) {}

    /** The value under a key as it is stored, or null. */
    Stored<V> stored(K key) {
        return stored((Output request) -> request.item(keys, key));
    }

    /** As {@link #stored}, of a key as it is stored itself. */
    Stored<V> storedAt(byte[] key) {
        return stored((Output request) -> request.items(key));
    }

    private Stored<V> stored(Write key) {
        try (Scratch scratch = Scratch.take()) {
            key.to(scratch.request);
            Input reply = ask(Native::get, scratch);
            return reply == null ? null : new Stored<>(reply.item(values), reply.soFar());
        }
    }

    /** Puts a value in place of a stored one, where null stands for no row; whether it did. */
    boolean swap(K key, Stored<V> expected, V value) {
        return swap((Output request) -> request.item(keys, key), expected, value);
    }

    /** As {@link #swap}, of a key as it is stored itself. */
    boolean swapAt(byte[] key, Stored<V> expected, V value) {
        return swap((Output request) -> request.items(key), expected, value);
    }

    private boolean swap(Write key, Stored<V> expected, V value) {
        return whether(Native::swap, request -> {
            key.to(request);
            if (expected == null) {
                request.flag(Output.NOTHING);
            } else {
                request.items(expected.item);
            }
            request.maybe(values, value);
        });
    }

    /** Removes the row of a key as it is stored. Nothing of it is read. */
    void removeAt(byte[] key) {
        try (Scratch scratch = Scratch.take()) {
            scratch.request.items(key);
            ask(Native::remove, scratch);
        }
    }

    /** The key that is stored so. */
    K key(byte[] item) {
        return new Input().of(item).item(keys);
    }

    /** A key of our own: the caller may change the one that it has passed, such as an array. */
    K copy(K key) {
        try (Scratch scratch = Scratch.take()) {
            scratch.request.item(keys, key);
            return key(scratch.request.bytes());
        }
    }

    long add(K key, long increment) {
        return number(Native::add, request -> {
            request.item(keys, key);
            request.number(increment);
            request.flag(sums());
        });
    }

    /**
     * How the native library adds: 1 if sums wrap as an int does, so that the codec reads them.
     *
     * @throws LarderException if the codec reads bytes: it couldn't read a sum where no row was
     */
    int sums() {
        if (values == Codec.INTEGER) {
            return 1;
        }
        if (values != Codec.LONG && Input.ofInteger().isReadAsBytes(values)) {
            checkOpen();
            throw new LarderException("the codec of values reads bytes, and a sum is an integer");
        }
        return 0;
    }

    /** Puts rows at once. The function checks a key, and gives it back. */
    void putAll(Map<? extends K, ? extends V> rows, UnaryOperator<K> checked) {
        List<Map.Entry<? extends K, ? extends V>> list = new ArrayList<>(rows.entrySet());
        whether(Native::putAll, request -> {
            request.number(list.size());
            for (Map.Entry<? extends K, ? extends V> row : list) {
                request.item(keys, checked.apply(row.getKey()));
                request.item(values, RangeView.checked(row.getValue()));
            }
        });
    }

    void putFor(K key, V value, long ms) {
        whether(Native::putFor, request -> {
            request.number(ms);
            request.item(keys, key);
            request.item(values, value);
        });
    }

    boolean expire(K key, long ms) {
        return whether(Native::expire, request -> {
            request.number(ms);
            request.item(keys, key);
        });
    }

    long timeLeft(K key) {
        return number(Native::timeLeft, request -> request.item(keys, key));
    }

    // Ranges.

    /** A part of the order of keys: null is an open end. */
    record Bounds<K>(K low, boolean lowIn, K high, boolean highIn) {
        static final Bounds<?> ALL = new Bounds<>(null, false, null, false);

        @SuppressWarnings("unchecked")
        static <K> Bounds<K> all() {
            return (Bounds<K>) ALL;
        }
    }

    private void bounds(Output request, Bounds<K> bounds) {
        bound(request, bounds.low, bounds.lowIn);
        bound(request, bounds.high, bounds.highIn);
    }

    private void bound(Output request, K key, boolean isIncluded) {
        request.flag(isIncluded ? 1 : 0);
        request.maybe(keys, key);
    }

    /** What of a range is after a key, as that is stored, in a direction; all of it for null. */
    private void bounds(Output request, Bounds<K> bounds, boolean down, byte[] after) {
        if (after == null) {
            bounds(request, bounds);
        } else if (down) {
            bound(request, bounds.low, bounds.lowIn);
            request.flag(0);
            request.items(after);
        } else {
            request.flag(0);
            request.items(after);
            bound(request, bounds.high, bounds.highIn);
        }
    }

    /** Some rows: keys and values in turns. */
    static final class Page {
        Object[] rows;
        /** The keys as they are stored, and where each ends: the caller may change its own. */
        private final Output keys = new Output();
        private int[] ends = {};
        int count;

        byte[] key(int i) {
            return Arrays.copyOfRange(keys.bytes(), i == 0 ? 0 : ends[i - 1], ends[i]);
        }

        boolean isLast;
        int bytes;
    }

    interface RowReader {
        void rows(Input reply, int count);
    }

    /** Has a page read: at most so many rows. Whether these are all. */
    boolean page(Bounds<K> bounds, boolean down, int most, RowReader reader) {
        return page(bounds, down, null, most, reader);
    }

    private boolean page(
            Bounds<K> bounds, boolean down, byte[] after, int most, RowReader reader) {
        try (Scratch scratch = Scratch.take()) {
            scratch.request.flag(down ? 1 : 0);
            scratch.request.number(most);
            bounds(scratch.request, bounds, down, after);
            Input reply = ask(Native::page, scratch);
            int head = reply.number();
            reader.rows(reply, head & Integer.MAX_VALUE);
            return head < 0;
        }
    }

    /** Reads a page of the rows after a key, as that is stored, or from the first on for null. */
    void page(Bounds<K> bounds, boolean down, byte[] after, int most, Page page) {
        page.isLast = page(bounds, down, after, most, (reply, count) -> {
            if (page.rows == null || page.rows.length < 2 * count) {
                page.rows = new Object[2 * count];
                page.ends = new int[count];
            }
            page.keys.clear();
            for (int i = 0; i < count; i++) {
                int begin = reply.position();
                page.rows[2 * i] = reply.item(keys);
                reply.copyTo(page.keys, begin);
                page.ends[i] = page.keys.length();
                page.rows[2 * i + 1] = reply.item(values);
            }
            page.count = count;
            page.bytes = reply.position();
        });
    }

    /** The first row of a range in a direction, or null. */
    Map.Entry<K, V> first(Bounds<K> bounds, boolean down) {
        Entry<K, V>[] found = entries(1);
        page(bounds, down, 1, (reply, count) -> {
            if (count > 0) {
                found[0] = row(reply);
            }
        });
        return found[0];
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private Entry<K, V>[] entries(int n) {
        return new Entry[n];
    }

    long count(Bounds<K> bounds) {
        if (bounds == Bounds.ALL) {
            return size();
        }
        return number(Native::count, request -> bounds(request, bounds));
    }

    // Ranks and match specifications.

    long rank(K key) {
        return number(Native::rank, request -> request.item(keys, key));
    }

    Map.Entry<K, V> nth(long n) {
        try (Scratch scratch = Scratch.take()) {
            scratch.request.number(n);
            Input reply = ask(Native::nth, scratch);
            return reply == null ? null : row(reply);
        }
    }

    private static void spec(Output request, String spec) {
        request.item(UTF8, spec);
    }

    static final Codec<String> UTF8 = new Codec<>() {
        @Override
        public void write(String value, Output out) {
            out.put(value.getBytes(StandardCharsets.UTF_8));
        }

        @Override
        public String read(Input in) {
            throw new UnsupportedOperationException();
        }
    };

    List<Map.Entry<K, V>> select(String spec) {
        try (Scratch scratch = Scratch.take()) {
            spec(scratch.request, spec);
            Input reply = ask(Native::select, scratch);
            int count = reply.number();
            List<Map.Entry<K, V>> rows = new ArrayList<>(count);
            for (int i = 0; i < count; i++) {
                rows.add(row(reply));
            }
            return rows;
        }
    }

    long selectCount(String spec) {
        return number(Native::selectCount, request -> spec(request, spec));
    }

    long selectDelete(String spec) {
        return number(Native::selectDelete, request -> spec(request, spec));
    }

    // Feeds and files.

    /**
     * Subscribes. The array gets the numbers of the feed and, if it is wished, of a snapshot of the
     * moment at which the feed begins; else 0. Nothing is open if this throws.
     */
    void subscribe(long token, int limit, String filter, boolean withSnapshot, long[] numbers) {
        try (Scratch scratch = Scratch.take()) {
            Output request = scratch.request;
            request.number(token);
            request.number(limit);
            request.maybe(UTF8, filter);
            request.flag(withSnapshot ? 1 : 0);
            Native.subscribe(id, request.bytes(), request.length(), numbers);
            Reference.reachabilityFence(this);
        }
    }

    /** The native library knows the files of the operating system alone. */
    private static byte[] path(Path file) {
        if (file.getFileSystem() != FileSystems.getDefault()) {
            throw new ProviderMismatchException("tables are saved to and loaded from files of the "
                    + "default file system, and " + file.toUri() + " is of another one");
        }
        return file.toAbsolutePath().toString().getBytes(StandardCharsets.UTF_8);
    }

    void save(Path file) throws IOException {
        Native.save(id, path(file));
        Reference.reachabilityFence(this);
    }

    static long load(Path file) throws IOException {
        return Native.load(path(file));
    }

    // The table as a whole.

    long size() {
        return kept(Native.size(id));
    }

    long memory() {
        return kept(Native.memory(id));
    }

    void clear() {
        Native.clear(id);
        Reference.reachabilityFence(this);
    }

    /** A row as it was; it has no setValue. */
    static final class Entry<K, V> extends java.util.AbstractMap.SimpleImmutableEntry<K, V> {
        private static final long serialVersionUID = 1L;

        Entry(K key, V value) {
            super(key, value);
        }
    }
}
