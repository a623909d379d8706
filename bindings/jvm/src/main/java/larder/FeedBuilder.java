package larder;

import java.util.Objects;

/** The options of a feed, which {@link #open} opens. Without an option it tells all changes. */
public final class FeedBuilder<K, V> {
    private static final int LIMIT = 10_000;

    private final Store<K, V> table;
    private int limit = LIMIT;
    private String filter;

    FeedBuilder(Store<K, V> table) {
        this.table = table;
    }

    /**
     * By how many changes the feed may fall behind, 10,000 without this. Beyond that the oldest are
     * lost, and {@link Change.Type#OVERFLOW} says how many. Changes that a filter holds back count.
     *
     * @throws IllegalArgumentException if it is not above 0
     */
    public FeedBuilder<K, V> limit(int changes) {
        if (changes <= 0) {
            throw new IllegalArgumentException("limit has to be above 0: " + changes);
        }
        this.limit = changes;
        return this;
    }

    /**
     * Delivers only changes of rows that match before or after: a match specification, as a text in
     * Erlang's syntax, of rows {Key, Value}. What its body gives doesn't matter. {@code CLEAR},
     * {@code OVERFLOW} and {@code GONE} are delivered in any case.
     */
    public FeedBuilder<K, V> filter(String spec) {
        this.filter = Objects.requireNonNull(spec, "spec");
        return this;
    }

    /**
     * Subscribes. Each change that takes effect from now on is delivered once.
     *
     * @throws IllegalArgumentException if the filter is no match specification; it says why
     * @throws IllegalStateException if the table is closed
     */
    public LarderFeed<K, V> open() {
        return subscribe(false).feed();
    }

    /**
     * Subscribes, and takes a snapshot of the moment at which the feed begins: each change is in
     * one of the two, and none in both, whoever writes meanwhile. There is one exception: a row
     * that had expired then, and was not removed yet, may be reported as expired, or as deleted or
     * replaced by a transaction that had seen it, though the snapshot doesn't have it.
     *
     * @throws IllegalArgumentException as {@link #open}
     * @throws IllegalStateException as {@link #open}
     */
    public LarderFeed.WithSnapshot<K, V> openWithSnapshot() {
        return subscribe(true);
    }

    private LarderFeed.WithSnapshot<K, V> subscribe(boolean withSnapshot) {
        long[] numbers = new long[2];
        LarderFeed<K, V> feed = new LarderFeed<>(
                token -> {
                    table.subscribe(token, limit, filter, withSnapshot, numbers);
                    return numbers[0];
                },
                table.keys,
                table.values);
        try {
            LarderSnapshot<K, V> snapshot = !withSnapshot
                    ? null
                    : new LarderSnapshot<>(new Store<>(() -> numbers[1], table.keys, table.values));
            return new LarderFeed.WithSnapshot<>(snapshot, feed);
        } catch (Throwable e) {
            Native.close(numbers[1]);
            feed.close();
            throw e;
        }
    }
}
