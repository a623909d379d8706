package larder;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Objects;
import java.util.function.Function;

/** A table to be. Without an option it keeps every row for ever. */
public final class TableBuilder<T extends LarderTable<?, ?>> {
    private final Function<Owned.Opening<RuntimeException>, T> table;
    private String name = "table";
    private long ttl = -1;
    private long idle = -1;
    private long maxSize = -1;
    private long maxMemory = -1;
    private Evict evict = Evict.NONE;
    private boolean expiring;
    private boolean compressed;

    TableBuilder(Function<Owned.Opening<RuntimeException>, T> table) {
        this.table = table;
    }

    /** In whole milliseconds, of which a part counts as one. */
    static long ms(Duration time, String what) {
        Objects.requireNonNull(time, what);
        if (time.isNegative()) {
            throw new IllegalArgumentException(what + " is below 0: " + time);
        }
        try {
            return time.plusNanos(999_999).toMillis();
        } catch (ArithmeticException e) {
            return Long.MAX_VALUE;
        }
    }

    private static long positive(long n, String what) {
        if (n <= 0) {
            throw new IllegalArgumentException(what + " has to be above 0: " + n);
        }
        return n;
    }

    /**
     * A name, at most 255 characters, for those who look at the process. Need not be unique. Each
     * name is kept until the process ends, also after its tables are closed.
     */
    public TableBuilder<T> name(String name) {
        this.name = Objects.requireNonNull(name, "name");
        return this;
    }

    /**
     * Rows live for so long after they were written, in whole milliseconds, of which a part counts
     * as one.
     *
     * @throws IllegalArgumentException if it is not above 0
     */
    public TableBuilder<T> ttl(Duration ttl) {
        this.ttl = positive(ms(ttl, "ttl"), "ttl in milliseconds");
        return this;
    }

    /**
     * Rows live for so long after they were written or got, in whole milliseconds, and up to an
     * eighth longer. {@code containsKey}, iterators and queries don't count.
     *
     * @throws IllegalArgumentException as {@link #ttl}
     */
    public TableBuilder<T> idle(Duration idle) {
        this.idle = positive(ms(idle, "idle"), "idle in milliseconds");
        return this;
    }

    /** Single rows may be given a time to live; the others live until they are removed. */
    public TableBuilder<T> expiring() {
        this.expiring = true;
        return this;
    }

    /**
     * So many rows at most.
     *
     * @throws IllegalArgumentException if it is not above 0
     */
    public TableBuilder<T> maxSize(long rows) {
        this.maxSize = positive(rows, "maxSize");
        return this;
    }

    /**
     * So many bytes of rows at most: those of keys and values as they are stored, and 32 more for
     * each row.
     *
     * @throws IllegalArgumentException if it is not above 0
     */
    public TableBuilder<T> maxMemory(long bytes) {
        this.maxMemory = positive(bytes, "maxMemory");
        return this;
    }

    /**
     * What becomes of a table that has as much as it may: without this, writes are refused with a
     * {@link LimitException}.
     */
    public TableBuilder<T> evict(Evict evict) {
        this.evict = Objects.requireNonNull(evict, "evict");
        return this;
    }

    /** Rows are kept compressed: less memory, more work for each access. */
    public TableBuilder<T> compressed() {
        this.compressed = true;
        return this;
    }

    /**
     * Makes the table. O(1). The builder may be used again.
     *
     * @throws IllegalArgumentException if the name is too long, or there is an {@link #evict}
     *     without a limit
     */
    public T open() {
        boolean limited = maxSize > 0 || maxMemory > 0;
        if (evict != Evict.NONE && !limited) {
            throw new IllegalArgumentException("evict needs maxSize or maxMemory");
        }
        boolean bounded = limited || expiring || ttl > 0 || idle > 0;
        byte[] bytes = name.getBytes(StandardCharsets.UTF_8);
        return table.apply(() -> Native.open(
                bytes, ttl, idle, maxSize, maxMemory, evict.ordinal(), bounded, compressed));
    }
}
