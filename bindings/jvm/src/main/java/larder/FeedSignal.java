package larder;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Wakes the threads that wait for a feed. One thread of the process waits for all feeds in the
 * native library, and signals those that may have changes. So threads wait for changes in Java,
 * where an interrupt or a close ends the wait.
 *
 * <p>It has no reference to its feed, which can be collected meanwhile.
 */
final class FeedSignal {
    private static final Map<Long, FeedSignal> SIGNALS = new ConcurrentHashMap<>();
    private static final AtomicLong NEXT = new AtomicLong();

    static {
        // It inherits no thread-locals or class loader of the thread that makes the first feed.
        Thread dispatcher = new Thread(null, FeedSignal::dispatch, "larder-feeds", 0, false);
        dispatcher.setDaemon(true);
        dispatcher.setContextClassLoader(null);
        dispatcher.start();
    }

    /** Boxed, so that {@link #unregister} allocates nothing. */
    final Long token = NEXT.incrementAndGet();
    /** Held only to read or to raise the count of signals. */
    private final ReentrantLock lock = new ReentrantLock();

    private final Condition signalled = lock.newCondition();
    private long signals;
    private int waiting;
    private volatile boolean isClosed;

    /** Registers it with the dispatching thread. */
    void register() {
        SIGNALS.put(token, this);
    }

    /** Unregisters it. */
    void unregister() {
        SIGNALS.remove(token);
    }

    private static void dispatch() {
        while (true) {
            // All feeds depend on this thread, and each signal comes once. So an exception, such as
            // OutOfMemoryError, must not end the loop.
            try {
                long token = Native.nextSignal();
                while (!signal(token)) {
                    Thread.yield();
                }
            } catch (Throwable e) {
                Thread.yield();
            }
        }
    }

    /** Signals a feed, if it is still registered. False if Java had no memory for that. */
    private static boolean signal(long token) {
        try {
            FeedSignal feed = SIGNALS.get(token);
            if (feed != null) {
                feed.signal();
            }
            return true;
        } catch (Throwable e) {
            return false;
        }
    }

    void signal() {
        lock.lock();
        try {
            signals++;
            signalled.signalAll();
        } finally {
            lock.unlock();
        }
    }

    /** Signals if a thread waits. */
    void signalOthers() {
        lock.lock();
        try {
            if (waiting > 0) {
                signals++;
                signalled.signalAll();
            }
        } finally {
            lock.unlock();
        }
    }

    /** Ends all waits, present and future. */
    void close() {
        isClosed = true;
        signal();
    }

    boolean isClosed() {
        return isClosed;
    }

    /** The number of signals so far. Read it before the feed, and pass it to {@link #await}. */
    long signals() {
        lock.lock();
        try {
            return signals;
        } finally {
            lock.unlock();
        }
    }

    /** Waits until {@link #signals} differs from {@code seen}, at most for {@code nanos}. */
    void await(long seen, long nanos) throws InterruptedException {
        lock.lockInterruptibly();
        waiting++;
        try {
            long left = nanos;
            while (signals == seen && left > 0) {
                left = signalled.awaitNanos(left);
            }
        } finally {
            waiting--;
            lock.unlock();
        }
    }

    /** The longest wait. */
    static final long FOREVER = TimeUnit.DAYS.toNanos(36_500);
}
