//! Checking that bytes are a text.

/// The text of some bytes, if they are UTF-8.
///
/// Most texts are short and ASCII. Those are decided by words, while [`str::from_utf8`] goes
/// through a short text byte by byte, and [`slice::is_ascii`] through its last few bytes.
#[inline]
pub fn utf8(bytes: &[u8]) -> Option<&str> {
    if is_ascii(bytes) {
        // SAFETY: ASCII is UTF-8.
        return Some(unsafe { str::from_utf8_unchecked(bytes) });
    }
    str::from_utf8(bytes).ok()
}

/// Whether no byte has its highest bit set.
#[inline]
fn is_ascii(bytes: &[u8]) -> bool {
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let word = |eight: &[u8]| eight.try_into().map_or(0, u64::from_le_bytes);
    let half = |four: &[u8; 4]| u64::from(u32::from_le_bytes(*four));
    // The last word overlaps the one before it.
    let all = if let Some(last) = bytes.last_chunk::<8>() {
        let words = bytes.chunks_exact(8).map(word);
        words.fold(u64::from_le_bytes(*last), |all, word| all | word)
    } else if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        half(first) | half(last)
    } else {
        u64::from(bytes.iter().fold(0, |all, byte| all | byte))
    };
    all & HIGH == 0
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
