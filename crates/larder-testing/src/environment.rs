//! What the environment asks of the suites: `LARDER_SOAK=n` for n times as much work,
//! `LARDER_SEED=n` for other random choices.

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// How many times as much work is asked for.
pub fn soak() -> u64 {
    number("LARDER_SOAK").unwrap_or(1).max(1)
}

/// So much work, or as many times as much as is asked for; less where a sanitizer watches, next to
/// nothing under Miri.
pub fn times(n: usize) -> usize {
    if cfg!(miri) {
        (n / 200).max(2)
    } else if cfg!(larder_sanitize) {
        (n / 4).max(2) * soak() as usize
    } else {
        n * soak() as usize
    }
}

/// The seed that is asked for, or this one. A failure must print it.
pub fn seed(otherwise: u64) -> u64 {
    number("LARDER_SEED").unwrap_or(otherwise)
}
