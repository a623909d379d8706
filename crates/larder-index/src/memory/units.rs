//! Which units of a region are taken: a bit each, and the search for some that are free side by
//! side.
//!
//! ```text
//!  word 0     word 1     word 2          unit i: bit i % 64 of word i / 64, set while it is taken
//!  1111 0011  0000 0000  0111 1111       (eight bits of each, the lowest first)
//!       ╰╯    ╰───────────╯              free side by side, across words too
//! ```
//!
//! Invariants:
//! 1. `free` is the number of clear bits.
//! 2. No word before `first` has a clear bit.
//! 3. A block has at most as many units as a word has bits, so it lies in one word or two.
//!
//! First fit: the lowest place that is long enough. Knuth, The Art of Computer Programming 1,
//! section 2.5; Wilson, Johnstone, Neely and Boles, Dynamic Storage Allocation (1995), who find it
//! and best fit the least wasteful of the simple ways. Neighbours that are free are one free place
//! without any work, which is why it is bits and not lists.

/// Units of a region.
pub(crate) const UNITS: usize = 8192;
/// The most units of one block: so many bits of a word.
pub(crate) const MOST: usize = 64;

/// Units of a chunk, the least that is given to the system alone: 64 KiB.
pub(crate) const CHUNK: usize = 256;

const WORD: usize = 64;

/// A region's units.
pub(crate) struct Units {
    /// Bit `i % 64` of word `i / 64`: unit `i` is taken.
    taken: [u64; UNITS / WORD],
    free: u32,
    /// No word before this one has a free unit.
    first: u32,
}

impl Units {
    /// All free but the first `head`.
    pub(crate) fn new(head: usize) -> Self {
        let mut units = Units {
            taken: [0; UNITS / WORD],
            free: UNITS as u32,
            first: 0,
        };
        units.mark(0, head);
        units
    }

    /// How many are free.
    pub(crate) fn free(&self) -> usize {
        self.free as usize
    }

    /// Takes `count` units side by side, 1 to [`MOST`]; the first of them.
    pub(crate) fn take(&mut self, count: usize) -> Option<usize> {
        if self.free() < count {
            return None;
        }
        // Invariant 2. It ends: some bit is clear, since `count` is one at least.
        while self.taken[self.first as usize] == !0 {
            self.first += 1;
        }
        let unit = self.find(count)?;
        self.mark(unit, count);
        Some(unit)
    }

    /// The lowest `count` free units side by side.
    fn find(&self, count: usize) -> Option<usize> {
        // The free units at the end of the word before: what `free` begins with may continue them.
        let mut before = 0;
        for (at, &taken) in self.taken.iter().enumerate().skip(self.first as usize) {
            let free = !taken;
            if before + free.trailing_ones() as usize >= count {
                return Some(at * WORD - before);
            }
            if let Some(bit) = run_within(free, count) {
                return Some(at * WORD + bit);
            }
            // A word that is free altogether would have been found (invariant 3), so what is free
            // at its end begins in it.
            before = free.leading_ones() as usize;
        }
        None
    }

    fn mark(&mut self, unit: usize, count: usize) {
        for (word, bits) in words(unit, count) {
            debug_assert_eq!(self.taken[word] & bits, 0, "a unit belongs to one block");
            self.taken[word] |= bits;
        }
        self.free -= count as u32;
    }

    /// Gives units back; how many free ones lie side by side there now, at most [`MOST`].
    pub(crate) fn give(&mut self, unit: usize, count: usize) -> usize {
        for (word, bits) in words(unit, count) {
            debug_assert_eq!(self.taken[word] & bits, bits, "a block is given back once");
            self.taken[word] &= !bits;
        }
        self.free += count as u32;
        // Invariant 2.
        self.first = self.first.min((unit / WORD) as u32);
        (self.free_before(unit) + count + self.free_from(unit + count)).min(MOST)
    }

    /// The chunks that are free altogether, as runs of units: the first one and how many.
    pub(crate) fn free_chunks(&self) -> Vec<(usize, usize)> {
        // Only whole chunks: less than a system's page can't be given, and small pieces cost a call
        // each.
        let chunks = self.taken.chunks_exact(CHUNK / WORD).enumerate();
        let free = chunks.filter(|(_, words)| words.iter().all(|w| *w == 0));
        let mut runs: Vec<(usize, usize)> = Vec::new();
        for (chunk, _) in free {
            match runs.last_mut() {
                Some((first, count)) if *first + *count == chunk * CHUNK => *count += CHUNK,
                _ => runs.push((chunk * CHUNK, CHUNK)),
            }
        }
        runs
    }

    /// Free units that end before this one, as far as the beginning of the word before its own.
    fn free_before(&self, unit: usize) -> usize {
        let (word, bit) = (unit / WORD, unit % WORD);
        // The bits below the unit's own, moved to the top. Only if all of them are free does the
        // word before count.
        let here = match bit {
            0 => 0,
            _ => (!self.taken[word] << (WORD - bit)).leading_ones() as usize,
        };
        if here < bit || word == 0 {
            return here;
        }
        here + (!self.taken[word - 1]).leading_ones() as usize
    }

    /// Free units from this one on, as far as the end of the word after its own.
    fn free_from(&self, unit: usize) -> usize {
        let (word, bit) = (unit / WORD, unit % WORD);
        // Behind the region's last unit there is none.
        if word == self.taken.len() {
            return 0;
        }
        let here = (!self.taken[word] >> bit).trailing_ones() as usize;
        if here < WORD - bit || word + 1 == self.taken.len() {
            return here;
        }
        here + (!self.taken[word + 1]).trailing_ones() as usize
    }
}

/// The lowest bit from which on `count` bits are set.
fn run_within(bits: u64, count: usize) -> Option<usize> {
    // A bit of `from_here` is set if `have` bits are, from it on. Each turn at most doubles `have`.
    let (mut from_here, mut have) = (bits, 1);
    while have < count {
        let step = have.min(count - have);
        from_here &= from_here >> step;
        have += step;
    }
    (from_here != 0).then(|| from_here.trailing_zeros() as usize)
}

/// The words in which these units are, one or two, and their bits.
fn words(unit: usize, count: usize) -> impl Iterator<Item = (usize, u64)> {
    let (word, bit) = (unit / WORD, unit % WORD);
    let here = count.min(WORD - bit);
    let bits = |n: usize| if n == WORD { !0 } else { (1 << n) - 1 };
    let rest = (count > here).then(|| (word + 1, bits(count - here)));
    std::iter::once((word, bits(here) << bit)).chain(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// First fit, unit by unit.
    fn oracle(taken: &[bool], count: usize) -> Option<usize> {
        taken.windows(count).position(|w| w.iter().all(|t| !t))
    }

    fn free_around(taken: &[bool], from: usize, to: usize) -> usize {
        let before = taken[..from].iter().rev().take_while(|t| !**t).count();
        let after = taken[to..].iter().take_while(|t| !**t).count();
        before + (to - from) + after
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 64 }))]

        #[test]
        fn blocks_lie_where_the_oracle_says(
            head in 0usize..80,
            steps in prop::collection::vec((1usize..=MOST, any::<u32>(), 0u8..3), 1..900),
        ) {
            let mut units = Units::new(head);
            let mut taken = vec![false; UNITS];
            taken[..head].fill(true);
            let mut blocks = Vec::new();
            for (count, chance, what) in steps {
                if what > 0 || blocks.is_empty() {
                    let found = units.take(count);
                    prop_assert_eq!(found, oracle(&taken, count));
                    if let Some(unit) = found {
                        taken[unit..unit + count].fill(true);
                        blocks.push((unit, count));
                    }
                } else {
                    let (unit, count) = blocks.swap_remove(chance as usize % blocks.len());
                    taken[unit..unit + count].fill(false);
                    let around = free_around(&taken, unit, unit + count);
                    let given = units.give(unit, count);
                    prop_assert_eq!(given, around.min(MOST));
                }
                prop_assert_eq!(units.free(), taken.iter().filter(|t| !**t).count());
            }
            let mut chunks = vec![false; UNITS / CHUNK];
            for (first, count) in units.free_chunks() {
                chunks[first / CHUNK..(first + count) / CHUNK].fill(true);
            }
            for (units, given) in taken.chunks(CHUNK).zip(chunks) {
                prop_assert_eq!(units.iter().all(|t| !t), given);
            }
        }
    }

    #[test]
    fn a_region_is_filled_to_its_last_unit_and_emptied() {
        for count in [1, 5, 10, 63, 64] {
            let mut units = Units::new(5);
            let blocks: Vec<_> = std::iter::from_fn(|| units.take(count)).collect();
            assert_eq!(blocks.len(), (UNITS - 5) / count);
            blocks.iter().for_each(|&unit| {
                units.give(unit, count);
            });
            assert_eq!((units.free(), units.take(MOST)), (UNITS - 5, Some(5)));
        }
    }
}
