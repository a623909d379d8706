//! Random numbers.

/// A small generator of numbers (Marsaglia's xorshift), so that a failure can be run again. The
/// seed must not be 0.
#[derive(Debug)]
pub struct Random(pub u64);

impl Random {
    /// The next number, below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }

    /// The next number, from 0 (included) to 1 (not included).
    pub fn unit(&mut self) -> f64 {
        self.below(1 << 53) as f64 / (1u64 << 53) as f64
    }
}
