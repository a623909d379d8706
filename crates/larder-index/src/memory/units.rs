//! The bitmap of the allocated units of a region, and the search for adjacent free ones.
//!
//! ```text
//!  word 0     word 1     word 2          bit i % 64 of word i / 64 is set: unit i is allocated
//!  1111 0011  0000 0000  0111 1111       (eight bits of each word, the lowest first)
//!       ╰╯    ╰───────────╯              adjacent free units, across words, too
//! ```
//!
//! Invariants:
//! * **M8** `free` is the number of clear bits.
//! * **M9** No word before `first` has a clear bit.
//! * **M10** No run of `long` or more adjacent free units begins in a word before `from`.
//! * **M11** A block has at most as many units as a word has bits, so it is in one word or two.
//!
//! First fit: the lowest place that is long enough. See Knuth, The Art of Computer Programming 1,
//! section 2.5, and Wilson, Johnstone, Neely and Boles, Dynamic Storage Allocation (1995). They
//! find first fit and best fit the least wasteful of the simple policies. In a bitmap, adjacent
//! free places merge without any work, which is why it is used in place of lists.

/// The number of units of a region.
pub(crate) const UNITS: usize = 8192;
/// The maximum number of units of a block: the number of bits of a word.
pub(crate) const MAX_BLOCK_UNITS: usize = 64;

/// The number of units of a chunk, the smallest part that is returned to the system: 64 KiB.
pub(crate) const CHUNK: usize = 256;

const WORD: usize = 64;

/// The units of a region.
pub(crate) struct Units {
    /// Bit `i % 64` of word `i / 64`: unit `i` is allocated.
    allocated: [u64; UNITS / WORD],
    free: u32,
    /// No word before this one has a free unit.
    first: u32,
    /// The number of units of the block whose search came furthest (M10).
    long: u32,
    /// The word at which that search ended.
    from: u32,
}

impl Units {
    /// All units are free, except the first `head`.
    pub(crate) fn new(head: usize) -> Self {
        let mut units = Units {
            allocated: [0; UNITS / WORD],
            free: UNITS as u32,
            first: 0,
            long: 1,
            from: 0,
        };
        units.mark(0, head);
        units
    }

    /// The number of free units.
    pub(crate) fn free(&self) -> usize {
        self.free as usize
    }

    /// Takes `count` adjacent units, 1 to [`MAX_BLOCK_UNITS`]. Returns the first of them.
    pub(crate) fn take(&mut self, count: usize) -> Option<usize> {
        // Enough free units are a condition, though they may not be adjacent.
        if self.free() < count {
            return None;
        }
        // M9. The loop ends, because some bit is clear: `count` is at least one.
        while self.allocated[self.first as usize] == !0 {
            self.first += 1;
        }
        let from = match count >= self.long as usize {
            true => self.first.max(self.from),
            false => self.first,
        };
        let unit = self.find(count, from as usize)?;
        // M10. Of two bounds, keep the one that skips more words: a short run is found near the
        // beginning anyway.
        let at = (unit / WORD) as u32;
        if at >= self.from {
            (self.long, self.from) = (count as u32, at);
        }
        self.mark(unit, count);
        Some(unit)
    }

    /// The lowest `count` adjacent free units. They begin in this word or after it.
    fn find(&self, count: usize, from: usize) -> Option<usize> {
        // The number of free units at the end of the previous word, which the free units at the
        // beginning of this word may continue.
        let mut before = 0;
        for (at, &allocated) in self.allocated.iter().enumerate().skip(from) {
            let free = !allocated;
            // In a region with many blocks, most words have no free unit.
            if free == 0 {
                before = 0;
                continue;
            }
            if before + free.trailing_ones() as usize >= count {
                return Some(at * WORD - before);
            }
            if let Some(bit) = run_within(free, count) {
                return Some(at * WORD + bit);
            }
            // If the word were entirely free, the units would have been found (M11). So the free
            // units at its end begin in it.
            before = free.leading_ones() as usize;
        }
        None
    }

    fn mark(&mut self, unit: usize, count: usize) {
        for (word, bits) in words(unit, count) {
            debug_assert_eq!(
                self.allocated[word] & bits,
                0,
                "a unit belongs to one block"
            );
            self.allocated[word] |= bits;
        }
        self.free -= count as u32;
    }

    /// Frees units. Returns how many adjacent units are free there now, at most
    /// [`MAX_BLOCK_UNITS`].
    pub(crate) fn give(&mut self, unit: usize, count: usize) -> usize {
        for (word, bits) in words(unit, count) {
            debug_assert_eq!(
                self.allocated[word] & bits,
                bits,
                "a block is given back once"
            );
            self.allocated[word] &= !bits;
        }
        self.free += count as u32;
        // M9.
        self.first = self.first.min((unit / WORD) as u32);
        // M10. If the units before these reach over two words or more, a run of any length begins
        // there already.
        let before = self.free_before(unit);
        self.from = self.from.min(((unit - before) / WORD) as u32);
        (before + count + self.free_from(unit + count)).min(MAX_BLOCK_UNITS)
    }

    /// The chunks that are entirely free, as runs of units: the first one and the number.
    pub(crate) fn free_chunks(&self) -> Vec<(usize, usize)> {
        // Consider only whole chunks. Less than a page can't be returned to the system, and each
        // small piece would cost a system call.
        let chunks = self.allocated.chunks_exact(CHUNK / WORD).enumerate();
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

    /// The number of free units that end before this one. Counts at most to the beginning of the
    /// previous word.
    fn free_before(&self, unit: usize) -> usize {
        let (word, bit) = (unit / WORD, unit % WORD);
        // Shift the bits below the unit's own to the top. The previous word counts only if all of
        // them are free.
        let here = match bit {
            0 => 0,
            _ => (!self.allocated[word] << (WORD - bit)).leading_ones() as usize,
        };
        if here < bit || word == 0 {
            return here;
        }
        here + (!self.allocated[word - 1]).leading_ones() as usize
    }

    /// The number of free units from this one on. Counts at most to the end of the next word.
    fn free_from(&self, unit: usize) -> usize {
        let (word, bit) = (unit / WORD, unit % WORD);
        // There are no units after the region's last one.
        if word == self.allocated.len() {
            return 0;
        }
        // If the free units don't reach the end of the word, the next word doesn't matter.
        let here = (!self.allocated[word] >> bit).trailing_ones() as usize;
        if here < WORD - bit || word + 1 == self.allocated.len() {
            return here;
        }
        here + (!self.allocated[word + 1]).trailing_ones() as usize
    }
}

/// The lowest bit at which a run of `count` set bits begins.
fn run_within(bits: u64, count: usize) -> Option<usize> {
    // A bit of `from_here` is set if a run of `have` set bits begins there. Each step at most
    // doubles `have`.
    let (mut from_here, mut have) = (bits, 1);
    while have < count && from_here != 0 {
        let step = have.min(count - have);
        from_here &= from_here >> step;
        have += step;
    }
    (from_here != 0).then(|| from_here.trailing_zeros() as usize)
}

/// The words that contain these units, one or two, and their bits.
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
    fn oracle(allocated: &[bool], count: usize) -> Option<usize> {
        allocated.windows(count).position(|w| w.iter().all(|t| !t))
    }

    fn free_around(allocated: &[bool], from: usize, to: usize) -> usize {
        let before = allocated[..from].iter().rev().take_while(|t| !**t).count();
        let after = allocated[to..].iter().take_while(|t| !**t).count();
        before + (to - from) + after
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 64 }))]

        #[test]
        fn blocks_lie_where_the_oracle_says(
            head in 0usize..80,
            steps in prop::collection::vec((1usize..=MAX_BLOCK_UNITS, any::<u32>(), 0u8..3), 1..900),
        ) {
            let mut units = Units::new(head);
            let mut allocated = vec![false; UNITS];
            allocated[..head].fill(true);
            let mut blocks = Vec::new();
            for (count, chance, what) in steps {
                if what > 0 || blocks.is_empty() {
                    let found = units.take(count);
                    prop_assert_eq!(found, oracle(&allocated, count));
                    if let Some(unit) = found {
                        allocated[unit..unit + count].fill(true);
                        blocks.push((unit, count));
                    }
                } else {
                    let (unit, count) = blocks.swap_remove(chance as usize % blocks.len());
                    allocated[unit..unit + count].fill(false);
                    let around = free_around(&allocated, unit, unit + count);
                    let given = units.give(unit, count);
                    prop_assert_eq!(given, around.min(MAX_BLOCK_UNITS));
                }
                prop_assert_eq!(units.free(), allocated.iter().filter(|t| !**t).count());
            }
            let mut chunks = vec![false; UNITS / CHUNK];
            for (first, count) in units.free_chunks() {
                chunks[first / CHUNK..(first + count) / CHUNK].fill(true);
            }
            for (units, given) in allocated.chunks(CHUNK).zip(chunks) {
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
            assert_eq!(
                (units.free(), units.take(MAX_BLOCK_UNITS)),
                (UNITS - 5, Some(5))
            );
        }
    }
}
