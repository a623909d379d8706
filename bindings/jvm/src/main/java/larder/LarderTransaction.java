package larder;

import java.lang.ref.Reference;
import java.time.Duration;
import java.util.Objects;

/**
 * Reads and writes of some tables that take effect at one instant, or not at all.
 *
 * <pre>{@code
 * LarderTransaction transfer =
 *         LarderTransaction.on(accounts, journal).timeout(Duration.ofSeconds(1));
 * long left = transfer.call(views -> {
 *     LarderView<Long, Long> balances = views.of(accounts);
 *     if (balances.getOrDefault(from, 0L) < cents) {
 *         throw new InsufficientFunds();               // nothing has changed
 *     }
 *     balances.addAndGet(to, cents);
 *     views.of(journal).put(number, cents);
 *     return balances.addAndGet(from, -cents);
 * });
 * }</pre>
 *
 * <p>The body sees the tables as of one instant, with its own writes. They take effect when it has
 * returned, if nobody has changed what it has read meanwhile: keys, absent ones too, and ranges. If
 * somebody has, nothing has happened, and the body is called again, with other views. So it should
 * have no side effects but by its views. Transactions are serialisable, also with operations on
 * single keys of the tables themselves: the result is as if each ran alone. No lookup, snapshot or
 * transaction sees some of the writes without the others; an iterator of the table itself may. No
 * lock is held while the body runs, and none waits for it.
 *
 * <p>What the body throws goes to the caller, and nothing has changed. A body that only reads never
 * loses. What it does with a table itself, and not with its view, is not part of the transaction:
 * if it writes there what it has read in the view, it loses to itself, each time.
 *
 * <p>A transaction may be called any number of times, by any number of threads at once. It keeps
 * its tables from being closed by the cleaner, and not from {@link LarderTable#close}.
 */
public final class LarderTransaction {
    /** What a transaction does. */
    @FunctionalInterface
    public interface Body<R, X extends Exception> {
        /** Reads and writes the views; its result is the transaction's. */
        R call(LarderViews views) throws X;
    }

    /** The body of a transaction without a result. */
    @FunctionalInterface
    public interface Action<X extends Exception> {
        /** Reads and writes the views. */
        void run(LarderViews views) throws X;
    }

    private static final ThreadLocal<Boolean> UNDER_WAY = new ThreadLocal<>();

    private final LarderTable<?, ?>[] tables;
    /** Null if there is no limit. */
    private final Duration timeout;

    private final int retries;

    private LarderTransaction(LarderTable<?, ?>[] tables, Duration timeout, int retries) {
        this.tables = tables;
        this.timeout = timeout;
        this.retries = retries;
    }

    /**
     * A transaction on these tables, which is tried until it takes effect.
     *
     * @throws IllegalArgumentException if there is no table, or one of them twice
     */
    public static LarderTransaction on(LarderTable<?, ?>... tables) {
        LarderTable<?, ?>[] own = tables.clone();
        if (own.length == 0) {
            throw new IllegalArgumentException("a transaction is on one table or more");
        }
        for (int i = 0; i < own.length; i++) {
            Objects.requireNonNull(own[i], "a table is null");
            for (int j = 0; j < i; j++) {
                if (own[i] == own[j]) {
                    throw new IllegalArgumentException(
                            "a table is named twice: " + (j + 1) + " and " + (i + 1));
                }
            }
        }
        return new LarderTransaction(own, null, Integer.MAX_VALUE);
    }

    /** The same with a limit of time: after it no attempt begins. The body is not interrupted. */
    public LarderTransaction timeout(Duration timeout) {
        TableBuilder.ms(timeout, "timeout");
        return new LarderTransaction(tables, timeout, retries);
    }

    /** The same, which is tried so many times again, at most. */
    public LarderTransaction retries(int retries) {
        if (retries < 0) {
            throw new IllegalArgumentException("retries is below 0: " + retries);
        }
        return new LarderTransaction(tables, timeout, retries);
    }

    /**
     * Calls the body until what it has done has taken effect, and gives its result.
     *
     * @throws X what the body throws: nothing has changed
     * @throws ConflictException after the last attempt, if that was lost, too; also after any lost
     *     attempt if the thread is interrupted, be it since before the call; it stays so
     * @throws LimitException if a table has no room for the writes, and evicts nothing
     * @throws IllegalStateException if a table is closed, or in the body of another transaction on
     *     this thread: that one's views are to be passed on
     */
    public <R, X extends Exception> R call(Body<R, X> body) throws X {
        Objects.requireNonNull(body, "body");
        if (UNDER_WAY.get() != null) {
            throw new IllegalStateException(
                    "a transaction is under way on this thread: use its views");
        }
        UNDER_WAY.set(true);
        try {
            return attempts(body);
        } finally {
            UNDER_WAY.remove();
            Reference.reachabilityFence(this);
        }
    }

    /** As {@link #call}, without a result. */
    public <X extends Exception> void run(Action<X> action) throws X {
        Objects.requireNonNull(action, "action");
        call(views -> {
            action.run(views);
            return null;
        });
    }

    private <R, X extends Exception> R attempts(Body<R, X> body) throws X {
        long began = System.nanoTime();
        long[] ids = new long[tables.length];
        for (int i = 0; i < ids.length; i++) {
            ids[i] = tables[i].store.id;
        }
        // The numbers of the views, and of the transaction. From `begin` on to the end of what it
        // has begun nothing outside of the `try` needs memory.
        long[] numbers = new long[tables.length + 1];
        Native.begin(ids, numbers);
        long id = numbers[tables.length];
        try {
            for (long attempts = 1; ; attempts++) {
                LarderViews views = new LarderViews(tables, numbers);
                R result;
                try {
                    result = body.call(views);
                } finally {
                    views.end();
                }
                if (Native.commit(id, numbers)) {
                    return result;
                }
                mayGoOn(attempts, began);
            }
        } finally {
            // Ends what was not committed.
            Native.close(id);
        }
    }

    private void mayGoOn(long attempts, long began) {
        String why = null;
        if (attempts > retries) {
            why = "";
        } else if (timeout != null
                && Duration.ofNanos(System.nanoTime() - began).compareTo(timeout) >= 0) {
            why = ", and the timeout of " + timeout + " is over";
        } else if (Thread.currentThread().isInterrupted()) {
            why = ", and its thread was interrupted";
        }
        if (why != null) {
            throw new ConflictException(
                    "others have changed what the transaction has read: " + attempts
                            + (attempts == 1 ? " attempt was lost" : " attempts were lost") + why);
        }
    }
}
