package larder;

import java.io.IOException;
import java.nio.file.Path;
import java.util.Objects;

/**
 * A table of rows in the order of their keys, outside the heap: the collector sees none of it. Any
 * number of threads use it at once.
 *
 * <p>It is a {@link java.util.concurrent.ConcurrentNavigableMap}. Keys and values are copied in and
 * out by their {@link Codec}s: a value that was got and changed is not changed in the table. {@code
 * putAll} puts all rows at once: nobody sees some of them without the others.
 *
 * <p>After {@link #close}, every method of the table and of its views and iterators throws an
 * {@link IllegalStateException}. Calls that are in progress end before, or throw it too. A table
 * that is left without being closed is closed some time after the collector finds that.
 *
 * <pre>{@code
 * try (LarderTable<String, Long> ages = LarderTable.builder(Codec.STRING, Codec.LONG).open()) {
 *     ages.put("Ann", 34L);
 *     ages.merge("Ann", 1L, Long::sum);
 *     ages.tailMap("A").forEach((name, age) -> System.out.println(name + " " + age));
 * }
 * }</pre>
 */
public class LarderTable<K, V> extends WritableRows<K, V> implements AutoCloseable {
    LarderTable(Store<K, V> store) {
        super(store);
    }

    /** Begins a table of keys and values of any type. */
    public static <K, V> TableBuilder<LarderTable<K, V>> builder(Codec<K> keys, Codec<V> values) {
        Objects.requireNonNull(keys, "keys");
        Objects.requireNonNull(values, "values");
        return new TableBuilder<>(opening -> new LarderTable<>(new Store<>(opening, keys, values)));
    }

    /** Gives the table up. Calls that use it are waited for. Snapshots of it stay. */
    @Override
    public void close() {
        store.close();
    }

    /** The table as it is now. O(1). */
    public LarderSnapshot<K, V> snapshot() {
        return new LarderSnapshot<>(store.snapshot());
    }

    /**
     * Bytes that the table holds outside the heap, but for values of more than 127 bytes, which are
     * kept beside it.
     */
    public long memory() {
        return store.memory();
    }

    LarderView<K, V> view(long number) {
        return new LarderView<>(store.view(number));
    }

    // Feeds and files.

    /** Begins a subscription to the changes of the table; see {@link LarderFeed}. */
    public FeedBuilder<K, V> feed() {
        return new FeedBuilder<>(store);
    }

    /**
     * Saves the table to a file, as it is at one instant during the call, whoever writes meanwhile.
     * A file of that name is replaced. It stays as it is until the new one is complete and on the
     * disk.
     *
     * @throws java.nio.file.NoSuchFileException if there is no such folder
     * @throws IOException what else the system says; the old file, if any, is as it was
     * @throws java.nio.file.ProviderMismatchException if the path isn't of the default file system
     * @throws IllegalStateException if the table is closed, or gets closed meanwhile
     */
    public void save(Path file) throws IOException {
        store.save(file);
    }

    /**
     * Makes a table of a file that {@link #save} wrote, compressed if the one that was saved was.
     * Files keep neither times nor limits: the table has none. The file is checked as a whole
     * before a row is loaded. It may come from Erlang or another host, if it has an ordered_set of
     * pairs of integers of 64 bits and binaries. The codecs have to be those of the table that was
     * saved: a row that they can't read is a {@link LarderException} when it is read.
     *
     * @throws java.nio.file.NoSuchFileException if there is no such file
     * @throws IOException if it can't be read, is damaged or cut short, or has a table of another
     *     kind
     * @throws java.nio.file.ProviderMismatchException if the path isn't of the default file system
     */
    public static <K, V> LarderTable<K, V> load(Path file, Codec<K> keys, Codec<V> values)
            throws IOException {
        Objects.requireNonNull(keys, "keys");
        Objects.requireNonNull(values, "values");
        return new LarderTable<>(new Store<>(() -> Store.load(file), keys, values));
    }
}
