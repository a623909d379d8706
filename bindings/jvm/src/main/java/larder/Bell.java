package larder;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Wakes the threads that wait for a feed. One thread of the process waits for all feeds in the
 * native library, and rings their bells. So whoever waits for a change waits in Java, where an
 * interrupt or a close ends it.
 *
 * <p>Knows nothing of its feed, which can be left and collected meanwhile.
 */
final class Bell {
    private static final Map<Long, Bell> BELLS = new ConcurrentHashMap<>();
    private static final AtomicLong NEXT = new AtomicLong();

    static {
        // It inherits nothing of the thread that needs the first feed.
        Thread ringer = new Thread(null, Bell::ringAll, "larder-feeds", 0, false);
        ringer.setDaemon(true);
        ringer.setContextClassLoader(null);
        ringer.start();
    }

    /** Boxed, so that {@link #take} needs no memory. */
    final Long token = NEXT.incrementAndGet();
    /** Held only for the moment of a look or a ring. */
    private final ReentrantLock lock = new ReentrantLock();

    private final Condition rung = lock.newCondition();
    private long rings;
    private int waiting;
    private volatile boolean isClosed;

    /** The ringer knows it from now on. */
    void hang() {
        BELLS.put(token, this);
    }

    /** The ringer knows it no more. */
    void take() {
        BELLS.remove(token);
    }

    private static void ringAll() {
        while (true) {
            // All feeds need this thread, and each ring: the library rings once, and who waits has
            // no other call. So what is thrown, if Java has no memory, ends nothing.
            try {
                long token = Native.rung();
                while (!ring(token)) {
                    Thread.yield();
                }
            } catch (Throwable e) {
                Thread.yield();
            }
        }
    }

    /** Rings a bell, if it still hangs. False if Java had no memory for that. */
    private static boolean ring(long token) {
        try {
            Bell bell = BELLS.get(token);
            if (bell != null) {
                bell.ring();
            }
            return true;
        } catch (Throwable e) {
            return false;
        }
    }

    void ring() {
        lock.lock();
        try {
            rings++;
            rung.signalAll();
        } finally {
            lock.unlock();
        }
    }

    /** Rings if somebody waits. */
    void ringOthers() {
        lock.lock();
        try {
            if (waiting > 0) {
                rings++;
                rung.signalAll();
            }
        } finally {
            lock.unlock();
        }
    }

    /** Nobody waits any more. */
    void close() {
        isClosed = true;
        ring();
    }

    boolean isClosed() {
        return isClosed;
    }

    /** To be asked before a look at the feed that is to be waited behind. */
    long rings() {
        lock.lock();
        try {
            return rings;
        } finally {
            lock.unlock();
        }
    }

    /** Waits until it has rung since {@link #rings} said so many; at most so long. */
    void await(long seen, long nanos) throws InterruptedException {
        lock.lockInterruptibly();
        waiting++;
        try {
            long left = nanos;
            while (rings == seen && left > 0) {
                left = rung.awaitNanos(left);
            }
        } finally {
            waiting--;
            lock.unlock();
        }
    }

    /** The longest wait. */
    static final long FOREVER = TimeUnit.DAYS.toNanos(36_500);
}
