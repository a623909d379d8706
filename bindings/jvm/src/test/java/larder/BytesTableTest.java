package larder;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ReadOnlyBufferException;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.function.IntFunction;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

class BytesTableTest {
    private static final List<IntFunction<ByteBuffer>> KINDS =
            List.of(
                    ByteBuffer::allocate,
                    ByteBuffer::allocateDirect,
                    n -> ByteBuffer.allocate(n + 3).position(3).slice());

    @Test
    void arrays_and_their_parts() {
        try (LarderBytesTable table = LarderBytesTable.builder().open()) {
            byte[] key = {1, 2, 3}, value = {4, 5, 6, 7}, into = new byte[6];
            assertEquals(-1, table.get(key, into));
            table.set(key, value);
            assertEquals(4, table.get(key, into));
            assertArrayEquals(new byte[] {4, 5, 6, 7, 0, 0}, into);
            table.set(new byte[] {9, 1, 2, 3, 9}, 1, 3, new byte[] {8, 8, 8}, 1, 2);
            assertEquals(2, table.get(new byte[] {1, 2, 3, 0}, 0, 3, into, 4, 2));
            assertArrayEquals(new byte[] {4, 5, 6, 7, 8, 8}, into);
            assertArrayEquals(new byte[] {8, 8}, table.get(key));
            // Too little room: the length, and nothing else.
            assertEquals(2, table.get(key, new byte[1]));
            assertEquals(2, table.get(key, 0, 3, into, 0, 1));
            assertEquals(4, into[0]);
            assertTrue(table.delete(key));
            assertFalse(table.delete(key));
            assertThrows(IndexOutOfBoundsException.class, () -> table.get(key, 1, 3, into, 0, 1));
            assertThrows(IndexOutOfBoundsException.class, () -> table.get(key, 0, 3, into, -1, 1));
            assertThrows(IndexOutOfBoundsException.class, () -> table.set(key, -1, 1, value, 0, 1));
            assertThrows(
                    IndexOutOfBoundsException.class,
                    () -> table.set(key, 0, 1, value, 4, Integer.MAX_VALUE));
            assertThrows(NullPointerException.class, () -> table.get((byte[]) null, into));
            assertThrows(NullPointerException.class, () -> table.set(key, null));
        }
    }

    @Test
    void buffers_of_all_kinds() {
        Random random = new Random(3);
        try (LarderBytesTable table = LarderBytesTable.builder().open();
                LarderLongBytesTable numbers = LarderLongBytesTable.builder().open()) {
            for (IntFunction<ByteBuffer> keyKind : KINDS) {
                for (IntFunction<ByteBuffer> valueKind : KINDS) {
                    for (int length : new int[] {0, 1, 90, 5_000, 100_000}) {
                        byte[] bytes = new byte[length];
                        random.nextBytes(bytes);
                        ByteBuffer key =
                                keyKind.apply(length + 4)
                                        .put((byte) 9)
                                        .put(bytes)
                                        .limit(length + 1)
                                        .position(1);
                        ByteBuffer value = valueKind.apply(length + 2).put(0, bytes).limit(length);
                        table.set(key, value);
                        assertEquals(1, key.position());
                        assertEquals(0, value.position());
                        ByteBuffer into = valueKind.apply(length + 5).position(2);
                        assertEquals(length, table.get(key, into));
                        assertEquals(length + 2, into.position());
                        byte[] found = new byte[length];
                        into.get(2, found);
                        assertArrayEquals(bytes, found);
                        assertArrayEquals(bytes, table.get(bytes));
                        numbers.set(length, value);
                        into.position(3);
                        assertEquals(length, numbers.get(length, into));
                        if (length > 0) {
                            ByteBuffer small = valueKind.apply(length - 1);
                            assertEquals(length, table.get(key, small));
                            assertEquals(0, small.position());
                        }
                        assertThrows(
                                ReadOnlyBufferException.class,
                                () -> table.get(key, into.asReadOnlyBuffer()));
                        ByteBuffer direct = ByteBuffer.allocateDirect(length).put(0, bytes);
                        table.set(direct.asReadOnlyBuffer(), value.asReadOnlyBuffer());
                    }
                }
            }
        }
    }

    /** Whoever gets or gives a key may change it: iterators and views have their own. */
    @Test
    @Timeout(20)
    void keys_may_be_changed() {
        try (LarderBytesTable table = LarderBytesTable.builder().open()) {
            for (int i = 0; i < 100; i++) {
                table.set(new byte[] {(byte) i}, new byte[] {1});
            }
            for (byte turned : new byte[] {0, 127}) {
                int[] seen = {0, 0};
                for (byte[] key : table.keySet()) {
                    assertEquals(seen[0]++, key[0]);
                    key[0] = turned;
                }
                for (Map.Entry<byte[], byte[]> row : table.descendingMap().entrySet()) {
                    assertEquals(99 - seen[1]++, row.getKey()[0]);
                    row.getKey()[0] = (byte) (127 - turned);
                }
                assertArrayEquals(new int[] {100, 100}, seen);
            }
            Iterator<byte[]> keys = table.keySet().iterator();
            keys.next()[0] = 50;
            keys.remove();
            assertThrows(IllegalStateException.class, keys::remove);
            assertFalse(table.containsKey(new byte[] {0}));
            assertTrue(table.containsKey(new byte[] {50}));
            // The last row of the first page, after which the second one is read already.
            for (int i = 0; i < 8; i++) {
                keys.next()[0] = 0;
            }
            assertTrue(keys.hasNext());
            keys.remove();
            assertFalse(table.containsKey(new byte[] {8}));
            assertEquals(98, table.size());
            assertTrue(table.entrySet().removeIf(row -> row.getKey()[0]++ == 20));
            assertFalse(table.containsKey(new byte[] {20}));
            assertTrue(table.containsKey(new byte[] {21}));
            table.replaceAll((key, value) -> new byte[] {key[0]++});
            assertEquals(97, table.size());
            table.forEach((key, value) -> assertArrayEquals(key, value));
            byte[] bound = {90};
            Map<byte[], byte[]> view = table.tailMap(bound);
            bound[0] = 0;
            assertEquals(10, view.size());
            view.clear();
            assertEquals(87, table.size());
        }
    }

    /** Views have the methods of their tables, and what they write is of the transaction. */
    @Test
    void views_of_bytes() {
        byte[] key = {1, 2, 3}, value = {4, 5, 6, 7}, into = new byte[6];
        try (LarderBytesTable table = LarderBytesTable.builder().open();
                LarderLongBytesTable numbers = LarderLongBytesTable.builder().open()) {
            LarderTransaction on = LarderTransaction.on(table, numbers);
            on.run(views -> {
                LarderBytesView view = views.of(table);
                view.set(key, value);
                view.set(value, 1, 2, key, 0, 1);
                view.set(ByteBuffer.wrap(value), ByteBuffer.wrap(key));
                assertEquals(4, view.get(key, into));
                assertEquals(1, view.get(value, 1, 2, into, 5, 1));
                assertArrayEquals(new byte[] {4, 5, 6, 7, 0, 1}, into);
                assertTrue(view.delete(value));
                assertEquals(-1, view.get(ByteBuffer.wrap(value), ByteBuffer.wrap(into)));
                LarderLongBytesView longs = views.of(numbers);
                longs.set(1, key);
                longs.set(2, value, 1, 3);
                longs.set(3, ByteBuffer.wrap(key));
                assertEquals(3, longs.get(1, into));
                assertEquals(3, longs.get(2, into, 3, 3));
                assertArrayEquals(new byte[] {1, 2, 3, 5, 6, 7}, into);
                ByteBuffer direct = ByteBuffer.allocateDirect(3);
                assertEquals(3, longs.get(3, direct));
                assertEquals(3, direct.position());
                assertTrue(longs.delete(3));
                assertFalse(longs.delete(3));
                assertEquals(0, table.size() + numbers.size());
            });
            assertEquals(2, table.size());
            assertArrayEquals(value, table.get(key));
            assertEquals(2, numbers.size());
            assertArrayEquals(new byte[] {5, 6, 7}, numbers.get(2L));
            assertThrows(ArithmeticException.class, () -> on.run(views -> {
                views.of(table).set(key, key);
                assertTrue(views.of(numbers).delete(1));
                throw new ArithmeticException();
            }));
            assertArrayEquals(value, table.get(key));
            assertEquals(2, numbers.size());
        }
    }

    @Test
    void nothing_is_allocated() {
        com.sun.management.ThreadMXBean threads =
                (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        ByteBuffer key = ByteBuffer.allocateDirect(8), value = ByteBuffer.allocateDirect(40);
        byte[] bytes = new byte[40], keyBytes = new byte[8];
        try (LarderBytesTable table = LarderBytesTable.builder().open();
                LarderLongBytesTable numbers = LarderLongBytesTable.builder().open();
                LarderLongTable longs = LarderLongTable.builder().open()) {
            Runnable round = () -> {
                for (int i = 0; i < 500; i++) {
                    key.putInt(0, i);
                    keyBytes[0] = (byte) i;
                    value.clear();
                    table.set(key, value);
                    table.get(key, value);
                    table.set(keyBytes, bytes);
                    table.get(keyBytes, bytes);
                    numbers.set(i, bytes);
                    numbers.get(i, bytes);
                    longs.set(i, i);
                    longs.put(i, i);
                    longs.addAndGet(i, longs.get(i));
                    longs.remove(i);
                }
            };
            round.run();
            long thread = Thread.currentThread().getId();
            long before = threads.getThreadAllocatedBytes(thread);
            round.run();
            long allocated = threads.getThreadAllocatedBytes(thread) - before;
            // What reading the count takes itself is far below a byte a call.
            assertTrue(allocated < 2_000, () -> allocated + " bytes in 5,000 calls");
        }
    }

    /** A value that goes from an array's key to a direct buffer takes what it needs itself. */
    @Test
    void room_is_not_allocated() {
        com.sun.management.ThreadMXBean threads =
                (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        ByteBuffer key = ByteBuffer.wrap(new byte[] {1}), into = ByteBuffer.allocateDirect(8 << 20);
        try (LarderBytesTable table = LarderBytesTable.builder().open()) {
            for (int length : new int[] {0, 3, 1024, 1025, 5_000, 100_000}) {
                byte[] value = new byte[length], found = new byte[length];
                Arrays.fill(value, (byte) length);
                table.set(new byte[] {1}, value);
                long thread = Thread.currentThread().getId();
                long before = threads.getThreadAllocatedBytes(thread);
                assertEquals(length, table.get(key, into.clear()));
                long allocated = threads.getThreadAllocatedBytes(thread) - before;
                assertTrue(allocated < 1 << 20, () -> allocated + " bytes for " + length);
                assertEquals(length, into.position());
                into.get(0, found);
                assertArrayEquals(value, found);
                into.clear().limit(length / 2);
                assertEquals(length, table.get(key, into));
                assertEquals(0, into.position());
            }
        }
    }

    @Test
    void long_keys_of_bytes() {
        try (LarderBytesTable table = LarderBytesTable.builder().open()) {
            for (int length = 0; length < 300; length++) {
                byte[] key = new byte[length];
                Arrays.fill(key, (byte) 0xFF);
                table.set(key, new byte[] {(byte) length});
            }
            assertEquals(300, table.size());
            int length = 0;
            for (byte[] key : table.keySet()) {
                assertEquals(length++, key.length);
            }
            assertEquals(299, table.lastKey().length);
        }
    }
}
