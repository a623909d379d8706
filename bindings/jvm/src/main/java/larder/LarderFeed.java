package larder;

import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;

/**
 * The changes of a table as they happen: a bounded queue that is polled, as a {@link
 * java.util.concurrent.BlockingQueue} or a {@link java.nio.file.WatchService} is, or that calls a
 * listener.
 *
 * <pre>{@code
 * FeedBuilder<String, Long> few = stock.feed().filter("[{{'_','$1'},[{'<','$1',10}],[true]}]");
 * try (LarderFeed<String, Long> feed = few.open()) {
 *     while (!feed.isOver()) {
 *         for (Change<String, Long> change : feed.take().changes()) {
 *             System.out.println(change);
 *         }
 *     }
 * }
 * }</pre>
 *
 * <p>Each change that takes effect after the feed was opened is delivered once, those of a key in
 * their order; but what others write at the moment of a {@code clear} may have no event.
 * Writers never wait for a feed. One that falls behind by more than its limit loses the
 * oldest changes, whole commits at a time, and gets {@link Change.Type#OVERFLOW} in their place;
 * {@link FeedBuilder#openWithSnapshot} begins anew then. When the table is closed, {@link
 * Change.Type#GONE} comes last. A feed doesn't keep its table from being closed by the cleaner.
 *
 * <p>Any number of threads may poll; each commit goes to one of them. While a codec reads a commit,
 * others that poll wait. If a codec throws, that commit is lost, the caller gets the exception, and
 * the next call goes on after it. But if Java has no memory for a commit, the caller gets the
 * OutOfMemoryError, and the next call gives that commit. One of more than 2,000 MiB, which no array
 * has room for, is delivered as {@link Change.Type#OVERFLOW}, too. A feed that is left is closed as
 * a table is.
 */
public final class LarderFeed<K, V> implements AutoCloseable {
    /** The states of a feed, with the native library's numbers. */
    private static final int NOTHING = 1;
    private static final int WAITS = 2;
    private static final int OVER = 3;

    /** Nanoseconds to wait for the end of a {@code putAll} before helping it. */
    private static final long PATIENCE = 1_000_000;
    /** Nanoseconds beyond its timeout that a caller may read changes that the filter excludes. */
    private static final long FILTERING = 10_000_000;
    /** The most bytes of a commit: a little less than an array may have. */
    private static final int LONGEST = 2_000 << 20;
    private static final int SHORT = 1024;
    /** A larger array isn't kept. */
    private static final int MAX_KEPT = 64 << 10;
    /** In place of an array that wasn't kept. */
    private static final byte[] NONE = {};

    private static final Change.Type[] TYPES = Change.Type.values();

    private final long id;
    private final FeedSignal signal;
    private final Codec<K> keys;
    private final Codec<V> values;
    private final Cleaner.Cleanable cleanable;
    private final AtomicBoolean hasListener = new AtomicBoolean();

    /** Held while the feed is read; protects the fields below. */
    private final ReentrantLock reading = new ReentrantLock();

    private final Input input = new Input();
    private byte[] reply = NONE;
    /** The number of changes left in the reply. */
    private int left;
    /** The state of the feed after these. */
    private int state;

    private volatile boolean isOver;

    /** Subscribes, with the token of the feed's signal, and returns the feed's number. */
    interface Subscribing {
        long subscribe(long token);
    }

    LarderFeed(Subscribing subscribing, Codec<K> keys, Codec<V> values) {
        this.keys = keys;
        this.values = values;
        this.signal = new FeedSignal();
        Owned owned = new Owned();
        this.cleanable = Store.CLEANER.register(this, new Close(owned, signal));
        try {
            signal.register();
            this.id = owned.open(() -> subscribing.subscribe(signal.token));
        } catch (Throwable e) {
            cleanable.clean();
            throw e;
        }
    }

    /** Has no reference to the feed. */
    private record Close(Owned owned, FeedSignal signal) implements Runnable {
        @Override
        public void run() {
            owned.run();
            signal.unregister();
        }
    }

    /**
     * A feed, and its table as of the moment at which it begins.
     *
     * @param snapshot the table without the changes that are delivered, to be closed after reading
     * @param feed the changes that the snapshot has not
     */
    public record WithSnapshot<K, V>(LarderSnapshot<K, V> snapshot, LarderFeed<K, V> feed)
            implements AutoCloseable {
        /** Closes both. */
        @Override
        public void close() {
            snapshot.close();
            feed.close();
        }
    }

    /**
     * The next commit, or null if there is none yet.
     *
     * @throws IllegalStateException if the feed is closed, is over or has a listener
     */
    public Commit<K, V> poll() {
        checkNoListener();
        try {
            return orThrow(next(0, false));
        } catch (InterruptedException e) {
            throw new AssertionError("nothing was waited for", e);
        }
    }

    /**
     * The next commit, for which it waits so long at most; null if there was none.
     *
     * @throws IllegalStateException as {@link #poll()}; also if the feed is closed meanwhile
     * @throws InterruptedException if the thread is interrupted; nothing is lost
     */
    public Commit<K, V> poll(Duration timeout) throws InterruptedException {
        checkNoListener();
        long ms = TableBuilder.ms(timeout, "timeout");
        boolean isLong = ms > FeedSignal.FOREVER / 1_000_000;
        return orThrow(next(isLong ? FeedSignal.FOREVER : timeout.toNanos(), false));
    }

    /**
     * The next commit, for which it waits.
     *
     * @throws IllegalStateException as {@link #poll()}; also if the feed is closed or gets a
     *     listener meanwhile
     * @throws InterruptedException if the thread is interrupted; nothing is lost
     */
    public Commit<K, V> take() throws InterruptedException {
        checkNoListener();
        while (true) {
            Commit<K, V> commit = orThrow(next(FeedSignal.FOREVER, false));
            if (commit != null) {
                return commit;
            }
        }
    }

    /** Whether {@link Change.Type#GONE} was delivered: the table is closed, and nothing follows. */
    public boolean isOver() {
        return isOver;
    }

    /** As {@link #listen(Executor, Consumer)}, on a daemon thread of the feed's own. */
    public CompletableFuture<Void> listen(Consumer<? super Commit<K, V>> listener) {
        return listen(
                task -> {
                    Thread thread = new Thread(task, "larder-feed");
                    thread.setDaemon(true);
                    thread.start();
                },
                listener);
    }

    /**
     * Calls a listener with each commit, one after the other, in one task of an executor, until the
     * feed is closed or over. Then the future is complete. If the listener or a codec throws, Java
     * has no memory for a commit, or the task is interrupted, the future has that exception. In
     * each case the feed is closed then.
     *
     * <p>The listener may use any table and close any of them, and this feed. It may not poll the
     * feed. Changes that it makes to the table are delivered to it in turn. After {@link #close} at
     * most one call is in progress or begins yet; the future says when it is over.
     *
     * @throws IllegalStateException if the feed is closed, is over or has a listener
     */
    public CompletableFuture<Void> listen(
            Executor executor, Consumer<? super Commit<K, V>> listener) {
        Objects.requireNonNull(executor, "executor");
        Objects.requireNonNull(listener, "listener");
        checkOpen();
        if (!hasListener.compareAndSet(false, true)) {
            throw new IllegalStateException("the feed has a listener");
        }
        CompletableFuture<Void> end = new CompletableFuture<>();
        boolean hasBegun = false;
        try {
            executor.execute(() -> serve(listener, end));
            hasBegun = true;
            // Threads that wait for a commit are refused from now on.
            signal.signal();
        } finally {
            if (!hasBegun) {
                hasListener.set(false);
            }
        }
        return end;
    }

    private void serve(Consumer<? super Commit<K, V>> listener, CompletableFuture<Void> end) {
        Throwable failure = null;
        try {
            while (!signal.isClosed() && !isOver) {
                Commit<K, V> commit = next(FeedSignal.FOREVER, true);
                if (commit != null && !signal.isClosed()) {
                    listener.accept(commit);
                }
            }
        } catch (Throwable e) {
            failure = e;
        }
        close();
        if (failure instanceof InterruptedException) {
            // For the executor, whose thread it is.
            Thread.currentThread().interrupt();
        }
        if (failure == null) {
            end.complete(null);
        } else {
            end.completeExceptionally(failure);
        }
    }

    /** Ends the subscription. Whoever waits for a change gets an IllegalStateException. */
    @Override
    public void close() {
        signal.close();
        cleanable.clean();
    }

    private void checkNoListener() {
        if (hasListener.get()) {
            throw new IllegalStateException("the feed has a listener, and is not to be polled");
        }
    }

    private void checkOpen() {
        if (signal.isClosed()) {
            throw new IllegalStateException("the feed is closed");
        }
        if (isOver) {
            throw new IllegalStateException("the feed is over: its table is closed");
        }
    }

    private Commit<K, V> orThrow(Commit<K, V> commit) {
        if (commit == null) {
            checkOpen();
        }
        return commit;
    }

    /** The next commit. Null after the timeout, and when the feed is closed or over. */
    private Commit<K, V> next(long nanos, boolean isListener) throws InterruptedException {
        if (reading.isHeldByCurrentThread()) {
            throw new IllegalStateException("a codec may not poll the feed that it reads for");
        }
        long end = System.nanoTime() + nanos;
        while (!signal.isClosed() && !isOver) {
            long signals = signal.signals();
            Commit<K, V> commit;
            int now;
            boolean isNothing = false;
            // Another thread's codec may hold it for long.
            if (nanos == 0) {
                reading.lock();
            } else if (!reading.tryLock(end - System.nanoTime(), TimeUnit.NANOSECONDS)) {
                return null;
            }
            try {
                if (!isListener) {
                    checkNoListener();
                }
                isNothing = left == 0 && !read();
                commit = isNothing ? null : decode();
                now = state;
            } finally {
                reading.unlock();
                if (!isNothing) {
                    // The native library signals once for the threads that found nothing. If this
                    // thread read first, they may have missed the signal, so they read again.
                    signal.signalOthers();
                }
            }
            if (commit != null) {
                return commit;
            }
            long most = end - System.nanoTime();
            if (now == OVER) {
                // Unless another thread has closed the feed since this one's check.
                if (!signal.isClosed()) {
                    isOver = true;
                }
            } else if (now == NOTHING || now == WAITS) {
                if (most <= 0) {
                    return null;
                }
                signal.await(signals, now == WAITS ? Math.min(PATIENCE, most) : most);
            } else if (most <= -FILTERING) {
                return null;
            } else if (nanos > 0 && Thread.interrupted()) {
                throw new InterruptedException();
            }
        }
        return null;
    }

    /**
     * Reads the next changes. Returns whether there were any. If there is no memory for the array,
     * the next call reads them.
     */
    private boolean read() {
        try {
            if (reply == NONE) {
                reply = new byte[SHORT];
            }
            int length = Native.changes(id, reply, LONGEST);
            if (length > reply.length) {
                reply = new byte[length];
                Native.changes(id, reply, LONGEST);
            }
        } catch (IllegalStateException e) {
            // The feed was closed since the caller's check.
            state = OVER;
            return false;
        } finally {
            Reference.reachabilityFence(this);
        }
        left = input.of(reply).number();
        state = input.flag();
        return left > 0;
    }

    /**
     * Decodes the next commit of the reply. Skips it also if a codec throws, but not if there is no
     * memory for it.
     */
    private Commit<K, V> decode() {
        int begin = input.position();
        long seq = input.longNumber();
        input.goTo(begin);
        int count = 0;
        int end = begin;
        while (count < left && input.longNumber() == seq) {
            skip();
            end = input.position();
            count++;
        }
        input.goTo(begin);
        boolean stays = false;
        try {
            return commit(seq, count);
        } catch (OutOfMemoryError e) {
            stays = true;
            throw e;
        } finally {
            if (stays) {
                input.goTo(begin);
            } else {
                input.goTo(end);
                left -= count;
            }
            if (left == 0 && reply.length > MAX_KEPT) {
                reply = NONE;
                input.of(NONE);
            }
        }
    }

    private Commit<K, V> commit(long seq, int count) {
        boolean isEnd = false;
        List<Change<K, V>> changes = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            input.longNumber();
            Change<K, V> change = change();
            changes.add(change);
            isEnd |= change.type() == Change.Type.GONE;
        }
        Commit<K, V> commit = new Commit<>(seq, Collections.unmodifiableList(changes));
        if (isEnd) {
            isOver = true;
        }
        return commit;
    }

    private void skip() {
        Change.Type type = TYPES[input.flag()];
        switch (type) {
            case OVERFLOW -> input.longNumber();
            case CLEAR, GONE -> {}
            case REPLACE -> {
                input.skip(true);
                input.skip(true);
                input.skip(true);
            }
            default -> {
                input.skip(true);
                input.skip(true);
            }
        }
    }

    private Change<K, V> change() {
        Change.Type type = TYPES[input.flag()];
        switch (type) {
            case OVERFLOW -> {
                return new Change<>(type, null, null, null, input.longNumber());
            }
            case CLEAR, GONE -> {}
            default -> {
                K key = input.item(keys);
                V value = input.item(values);
                return switch (type) {
                    case INSERT -> new Change<>(type, key, null, value, 0);
                    case REPLACE -> new Change<>(type, key, value, input.item(values), 0);
                    default -> new Change<>(type, key, value, null, 0);
                };
            }
        }
        return new Change<>(type, null, null, null, 0);
    }
}
