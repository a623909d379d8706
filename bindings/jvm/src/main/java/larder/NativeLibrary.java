package larder;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;

/** Finds the native library: the file that the property larder.library names, or the jar's own. */
final class NativeLibrary {
    /** The version of these classes; a check at build time compares it with the jar's. */
    static final String VERSION = "0.1.0";

    private static final String PROPERTY = "larder.library";

    private NativeLibrary() {}

    static void load() {
        String file = System.getProperty(PROPERTY);
        if (file != null) {
            System.load(Path.of(file).toAbsolutePath().toString());
            return;
        }
        String resource = "/native/" + platform() + "/liblarder_jni.so";
        try (InputStream library = NativeLibrary.class.getResourceAsStream(resource)) {
            if (library == null) {
                throw new UnsatisfiedLinkError(
                        "Larder's jar has no " + resource + "; build it here with `make jvm`, or"
                                + " name a file by -D" + PROPERTY);
            }
            load(library);
        } catch (IOException e) {
            String text = "Larder's library can't be unpacked: " + e;
            throw (Error) new UnsatisfiedLinkError(text).initCause(e);
        }
    }

    /** Refuses a library of another version, whose methods may have other arguments. */
    static void check(String version) {
        if (!version.equals(VERSION)) {
            throw new UnsatisfiedLinkError(
                    "the version of Larder's native library is " + version
                            + ", that of its classes " + VERSION + "; take both from one build:"
                            + " rebuild the jar by `make jvm`, and name no older file by -D"
                            + PROPERTY);
        }
    }

    /** The loader has the file open: its name may go at once. */
    private static void load(InputStream library) throws IOException {
        Path copy = Files.createTempFile("larder", ".so");
        try {
            // Written to the file that is there, which nobody else may write to.
            try (OutputStream out = Files.newOutputStream(copy)) {
                library.transferTo(out);
            }
            System.load(copy.toAbsolutePath().toString());
        } finally {
            Files.deleteIfExists(copy);
        }
    }

    /** As in linux-x86_64, linux-aarch64. */
    static String platform() {
        String os = System.getProperty("os.name").toLowerCase(Locale.ROOT).split(" ")[0];
        String arch = System.getProperty("os.arch").toLowerCase(Locale.ROOT);
        return os + "-" + switch (arch) {
            case "amd64", "x86_64" -> "x86_64";
            case "arm64", "aarch64" -> "aarch64";
            default -> arch;
        };
    }
}
