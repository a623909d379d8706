//! Checking that bytes are a text.

/// The text of some bytes, if they are UTF-8.
///
/// Most texts are short and ASCII. `is_ascii` looks at words, wherever they lie, while
/// [`str::from_utf8`] goes through a short text byte by byte.
#[inline]
pub fn utf8(bytes: &[u8]) -> Option<&str> {
    if bytes.is_ascii() {
        // SAFETY: ASCII is UTF-8.
        return Some(unsafe { str::from_utf8_unchecked(bytes) });
    }
    str::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_standard_library_takes() {
        let texts = [
            "",
            "a",
            "abcdefg\u{7F}",
            "é",
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaé",
            "🦀",
        ];
        for text in texts.map(str::as_bytes) {
            for bytes in (0..=text.len()).flat_map(|at| [&text[..at], &text[at..]]) {
                assert_eq!(utf8(bytes), str::from_utf8(bytes).ok(), "{bytes:?}");
            }
        }
        assert_eq!(utf8(b"aaaaaaaa\xFF"), None);
    }
}
