package larder;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

/** Classes and a native library of different versions. */
class NativeLibraryTest {
    @Test
    void a_library_of_another_version_is_refused() {
        NativeLibrary.check(NativeLibrary.VERSION);
        for (String other : new String[] {"0.0.9", "unknown (an older one)"}) {
            Error error =
                    assertThrows(UnsatisfiedLinkError.class, () -> NativeLibrary.check(other));
            String text = error.getMessage();
            assertTrue(text.contains("library is " + other + ","), text);
            assertTrue(text.contains("classes " + NativeLibrary.VERSION + ";"), text);
        }
    }
}
