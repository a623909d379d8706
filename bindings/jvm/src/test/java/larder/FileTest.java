package larder;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.ProviderMismatchException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tables saved and loaded. */
class FileTest {
    @TempDir
    Path folder;

    @Test
    void what_was_saved_comes_back() throws IOException {
        long open = Native.handles();
        Path file = folder.resolve("täble");
        try (LarderTable<String, Double> table =
                LarderTable.builder(Codec.STRING, Codec.DOUBLE).compressed().open()) {
            table.putAll(Map.of("a", 1.5, "\uD83D\uDE00", -0.0, "", Double.NaN));
            table.save(file);
            table.put("later", 1.0);
            try (LarderTable<String, Double> loaded =
                    LarderTable.load(file, Codec.STRING, Codec.DOUBLE)) {
                assertEquals(Map.of("a", 1.5, "\uD83D\uDE00", -0.0, "", Double.NaN), loaded);
                loaded.put("more", 2.0);
                assertEquals(4, table.size());
            }
            // A file that is there is replaced.
            table.save(file);
        }
        try (LarderTable<String, Double> loaded =
                LarderTable.load(file, Codec.STRING, Codec.DOUBLE)) {
            assertEquals(4, loaded.size());
        }
        try (LarderLongTable table =
                LarderLongTable.builder().ttl(Duration.ofHours(1)).maxSize(2).open()) {
            table.set(1, 10);
            table.set(2, 20);
            table.save(file);
        }
        // Files keep no times and limits.
        try (LarderLongTable loaded = LarderLongTable.load(file, -1)) {
            assertEquals(Map.of(1L, 10L, 2L, 20L), loaded);
            assertEquals(-1, loaded.get(3));
            loaded.set(3, 30);
            assertEquals(3, loaded.rank(3L).getAsLong());
            assertThrows(UnsupportedOperationException.class, () -> loaded.timeLeft(1L));
        }
        byte[] bytes = {1, 0, -1};
        try (LarderBytesTable table = LarderBytesTable.builder().open()) {
            table.set(bytes, new byte[100_000]);
            table.save(file);
        }
        try (LarderBytesTable loaded = LarderBytesTable.load(file)) {
            assertArrayEquals(new byte[100_000], loaded.get(bytes));
        }
        try (LarderLongBytesTable table = LarderLongBytesTable.builder().open()) {
            table.set(Long.MIN_VALUE, bytes);
            table.save(file);
        }
        try (LarderLongBytesTable loaded = LarderLongBytesTable.load(file)) {
            assertArrayEquals(bytes, loaded.get(Long.MIN_VALUE));
        }
        assertEquals(open, Native.handles());
    }

    /** All rows have one value, which a writer changes for all at once: a file has one, too. */
    @Test
    void a_file_is_of_one_instant() throws Exception {
        int rows = 5_000;
        LarderLongTable table = LarderLongTable.builder().open();
        table.putAll(LongStream.range(0, rows).boxed().collect(Collectors.toMap(n -> n, n -> 0L)));
        AtomicReference<Throwable> wrong = new AtomicReference<>();
        AtomicReference<Boolean> isOver = new AtomicReference<>(false);
        Thread writer = new Thread(() -> {
            try {
                for (long value = 1; !isOver.get(); value++) {
                    long all = value;
                    table.putAll(LongStream.range(0, rows)
                            .boxed()
                            .collect(Collectors.toMap(n -> n, n -> all)));
                }
            } catch (Throwable e) {
                wrong.set(e);
            }
        });
        writer.start();
        long last = 0;
        for (int i = 0; i < 5; i++) {
            Path file = folder.resolve("file" + i);
            while (table.get(0) == last) {
                Thread.sleep(1);
            }
            table.save(file);
            try (LarderLongTable loaded = LarderLongTable.load(file)) {
                assertEquals(rows, loaded.size());
                List<Long> values = loaded.values().stream().distinct().toList();
                assertEquals(1, values.size(), values::toString);
                last = values.get(0);
            }
        }
        isOver.set(true);
        writer.join();
        assertNull(wrong.get());
        table.close();
    }

    @Test
    void bad_files_are_refused() throws IOException {
        long open = Native.handles();
        Path file = folder.resolve("file");
        String missing =
                assertThrows(NoSuchFileException.class, () -> LarderLongTable.load(file)).getFile();
        assertEquals(file.toString(), missing);
        Files.writeString(file, "no table");
        String text =
                assertThrows(IOException.class, () -> LarderLongTable.load(file)).getMessage();
        assertTrue(text.contains("not a Larder table file"), text);
        try (LarderLongTable table = LarderLongTable.builder().open()) {
            for (long i = 0; i < 1_000; i++) {
                table.set(i, i);
            }
            table.save(file);
            byte[] whole = Files.readAllBytes(file);
            Files.write(file, java.util.Arrays.copyOf(whole, whole.length - 10));
            text = assertThrows(IOException.class, () -> LarderLongTable.load(file)).getMessage();
            assertTrue(text.contains("cut short"), text);
            byte[] damaged = whole.clone();
            damaged[whole.length / 2] ^= 1;
            Files.write(file, damaged);
            text = assertThrows(IOException.class, () -> LarderLongTable.load(file)).getMessage();
            assertTrue(text.contains("damaged"), text);
            // A save that fails leaves the old file, and nothing else.
            Path nowhere = folder.resolve("none").resolve("file");
            missing = assertThrows(NoSuchFileException.class, () -> table.save(nowhere)).getFile();
            assertEquals(nowhere.toString(), missing);
            assertArrayEquals(damaged, Files.readAllBytes(file));
            try (Stream<Path> files = Files.list(folder)) {
                assertEquals(List.of(file), files.toList());
            }
        }
        LarderLongTable closed = LarderLongTable.builder().open();
        closed.close();
        assertThrows(IllegalStateException.class, () -> closed.save(file));
        assertEquals(open, Native.handles());
    }

    /** A path that can't be used is an error with that path, and nothing is written. */
    @Test
    void paths_of_other_file_systems_are_refused() throws IOException {
        Path zip = folder.resolve("files.zip");
        try (LarderLongTable table = LarderLongTable.builder().open();
                FileSystem other = FileSystems.newFileSystem(zip, Map.of("create", "true"))) {
            table.set(1, 2);
            Path file = other.getPath("/table");
            String text =
                    assertThrows(ProviderMismatchException.class, () -> table.save(file))
                            .getMessage();
            assertTrue(text.contains("files.zip!/table"), text);
            assertThrows(ProviderMismatchException.class, () -> LarderLongTable.load(file));
            assertFalse(Files.exists(file));
        }
    }

    /** Bytes that a codec would have written otherwise are no keys, and iterators end. */
    @Test
    @Timeout(20)
    void other_forms_of_keys_are_refused() throws IOException {
        Path file = folder.resolve("file");
        try (LarderBytesTable table = LarderBytesTable.builder().open()) {
            for (int i = 0; i < 20; i++) {
                // '@' and the letters after it in two bytes, and in nine what a double has first.
                table.set(new byte[] {(byte) 0xC1, (byte) (0x80 + i)}, new byte[0]);
                table.set(new byte[] {-2, 1, 1, 1, 1, 1, 1, 1, (byte) i}, new byte[0]);
            }
            table.set(new byte[] {-1, -8, 0, 0, 0, 0, 0, 1}, new byte[0]);
            table.save(file);
        }
        try (LarderTable<String, byte[]> texts =
                LarderTable.load(file, Codec.STRING, Codec.BYTES)) {
            assertThrows(LarderException.class, () -> texts.forEach((key, value) -> {}));
            assertThrows(LarderException.class, texts::pollFirstEntry);
            assertEquals(41, texts.size());
        }
        try (LarderTable<Double, byte[]> numbers =
                LarderTable.load(file, Codec.DOUBLE, Codec.BYTES)) {
            assertThrows(LarderException.class, () -> numbers.tailMap(1e200).forEach((k, v) -> {}));
            assertThrows(LarderException.class, numbers::pollLastEntry);
            assertEquals(41, numbers.size());
        }
    }

    @Test
    void codecs_that_do_not_fit_say_so() throws IOException {
        Path file = folder.resolve("file");
        try (LarderLongTable table = LarderLongTable.builder().open()) {
            table.set(1, 2);
            table.save(file);
        }
        try (LarderTable<Long, String> loaded = LarderTable.load(file, Codec.LONG, Codec.STRING)) {
            assertThrows(LarderException.class, () -> loaded.get(1L));
        }
    }
}
