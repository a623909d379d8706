package larder;

import java.lang.ref.Reference;

/** Rows of longs, of a table or of a transaction's view, without an object made. */
final class LongAccess {
    private static final long ONE = 0x9E3779B97F4A7C15L;
    private static final long OTHER = ONE + 1;

    private LongAccess() {}

    static long get(Store<Long, Long> store, long key, long absent) {
        try {
            return Native.getLong(store.id, key, absent);
        } finally {
            Reference.reachabilityFence(store);
        }
    }

    /** As of any map, but without bytes of a request. Of two numbers at most one is the value. */
    static Long get(Store<Long, Long> store, long key) {
        long value = get(store, key, ONE);
        if (value == ONE) {
            value = get(store, key, OTHER);
            if (value == OTHER) {
                return null;
            }
        }
        return value;
    }

    static boolean containsKey(Store<Long, Long> store, long key) {
        try {
            return Native.hasLong(store.id, key);
        } finally {
            Reference.reachabilityFence(store);
        }
    }

    static long put(Store<Long, Long> store, long key, long value, long absent) {
        try {
            return Native.putLong(store.id, key, value, absent);
        } finally {
            Reference.reachabilityFence(store);
        }
    }

    static void set(Store<Long, Long> store, long key, long value) {
        try {
            Native.setLong(store.id, key, value);
        } finally {
            Reference.reachabilityFence(store);
        }
    }

    static long putIfAbsent(Store<Long, Long> store, long key, long value, long absent) {
        try {
            return Native.putNewLong(store.id, key, value, absent);
        } finally {
            Reference.reachabilityFence(store);
        }
    }

    static long addAndGet(Store<Long, Long> store, long key, long increment) {
        try {
            return Native.addLong(store.id, key, increment);
        } finally {
            Reference.reachabilityFence(store);
        }
    }

    static boolean compareAndSet(Store<Long, Long> store, long key, long expected, long value) {
        try {
            return Native.swapLong(store.id, key, expected, value);
        } finally {
            Reference.reachabilityFence(store);
        }
    }

    static long remove(Store<Long, Long> store, long key, long absent) {
        try {
            return Native.removeLong(store.id, key, absent);
        } finally {
            Reference.reachabilityFence(store);
        }
    }

    static void scan(Store<Long, Long> store, long from, long to, LarderLongTable.Rows rows) {
        long[] next = {from};
        boolean isLast = next[0] > to;
        while (!isLast) {
            Store.Bounds<Long> rest = new Store.Bounds<>(next[0], true, to, true);
            isLast = store.page(rest, false, 256, (reply, count) -> {
                for (int i = 0; i < count; i++) {
                    next[0] = reply.integerItem();
                    rows.accept(next[0], reply.integerItem());
                }
            }) || next[0] == Long.MAX_VALUE;
            next[0]++;
        }
    }
}
