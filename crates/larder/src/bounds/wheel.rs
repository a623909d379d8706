//! Timers: a hierarchical timing wheel (Varghese and Lauck: Hashed and Hierarchical Timing Wheels,
//! SOSP 1987). A timer is a key, and the time at which its object must be checked.
//!
//! ```text
//!  level 0   64 slots of 1 ms      selected by the last six bits of the time
//!  level 1   64 slots of 64 ms     selected by the six bits before them
//!  …
//!  level 6
//! ```
//!
//! # Invariants
//!
//! * **EX9** The level of a timer is the highest group of six bits in which its time differs from
//!   `now`. Its slot is selected by the bits of that group. So on each level all timers are after
//!   `now`, and all timers of a level come before those of the next.
//! * **EX10** While a slot of a higher level is redistributed, `now` is the beginning of the slot,
//!   and doesn't change. No timer is added to that slot then, since its time differs from `now` on
//!   a lower level.
//! * **EX11** Timers in `ready` have a time of `now` or before.
//!
//! Deviation: a slot is redistributed, and read, chunk by chunk, because writers wait for the lock
//! of the wheel. Entries are in chunks of bytes, not in lists. A timer takes its key and about six
//! bytes.

use larder_term::varint;
use std::collections::VecDeque;

const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
/// 42 bits of time.
const LEVELS: usize = 7;

/// The number of bytes of a chunk. A chunk with a longer entry is larger.
const CHUNK: usize = 2048;

/// The number of bytes of a time in an entry.
const TIME: usize = 5;

/// Timers, concatenated: time, length of the key, key.
pub(crate) type TimerChunk = Vec<u8>;

#[derive(Default)]
struct WheelSlot(Vec<TimerChunk>);

struct Level {
    /// `SLOTS` of them.
    slots: Box<[WheelSlot]>,
    /// A bit for each slot that is not empty.
    occupied: u64,
}

/// A wheel.
#[derive(Default)]
pub(crate) struct Wheel {
    now: u64,
    levels: [Option<Level>; LEVELS],
    /// The rest of the slot that is being redistributed.
    dealt: WheelSlot,
    ready: VecDeque<TimerChunk>,
    /// The number of bytes of all chunks.
    bytes: usize,
    len: usize,
    sweep: Sweep,
}

/// Where a sweep continues.
#[derive(Default)]
struct Sweep {
    /// The number of slots that were begun, of all levels.
    slots: usize,
    /// The number of chunks of the last one of these that are left.
    chunks: usize,
}

/// The result of [`Wheel::turn`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TurnResult {
    /// A chunk of timers that are due. There may be more.
    Due(TimerChunk),
    /// No further timer is due.
    Done,
    /// The turn was stopped early, so that writers don't wait long. It must be called again.
    Stopped,
}

/// A slot that has timers.
struct NextSlot {
    level: usize,
    slot: usize,
    /// The time at which it begins.
    begins: u64,
}

/// The timers of a chunk.
pub(crate) fn timers(chunk: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let mut rest = chunk;
    std::iter::from_fn(move || {
        // A time has fewer bytes than a word. The missing ones are zero.
        let (time, after) = rest.split_at_checked(TIME)?;
        let mut bytes = [0; 8];
        bytes[..TIME].copy_from_slice(time);
        // The key's length follows, and then the key.
        let (len, at) = varint::read(after, 0);
        let (key, next) = after[at..].split_at(len as usize);
        rest = next;
        Some((u64::from_le_bytes(bytes), key))
    })
}

fn append(time: u64, key: &[u8], chunk: &mut TimerChunk) {
    // The time, in `TIME` bytes.
    chunk.extend_from_slice(&time.to_le_bytes()[..TIME]);
    // The key's length, which mostly takes one byte, and the key.
    varint::push(chunk, key.len() as u64);
    chunk.extend_from_slice(key);
}

/// Appends a timer to the last of some chunks. Returns by how many bytes the chunk has grown. If
/// there is no room, returns a new chunk and its size.
fn add(time: u64, key: &[u8], last: Option<&mut TimerChunk>) -> Result<usize, (TimerChunk, usize)> {
    let need = TIME + varint::MOST + key.len();
    match last {
        // A chunk that was made for a long key may be used up to its own capacity.
        Some(chunk) if chunk.len() + need <= CHUNK.max(chunk.capacity()) => {
            let before = chunk.capacity();
            append(time, key, chunk);
            Ok(chunk.capacity() - before)
        }
        last => {
            // The first chunk of a slot starts small.
            let capacity = if last.is_some() { CHUNK } else { 0 };
            let mut chunk = Vec::with_capacity(need.max(capacity));
            append(time, key, &mut chunk);
            let bytes = chunk.capacity();
            Err((chunk, bytes))
        }
    }
}

impl Wheel {
    /// Adds a timer.
    pub(crate) fn push(&mut self, time: u64, key: &[u8]) {
        self.len += 1;
        self.place(time, key);
    }

    fn place(&mut self, time: u64, key: &[u8]) {
        if time <= self.now {
            // EX11: it is due.
            match add(time, key, self.ready.back_mut()) {
                Ok(more) => self.bytes += more,
                Err((chunk, bytes)) => {
                    self.ready.push_back(chunk);
                    self.bytes += bytes;
                }
            }
            return;
        }
        // EX9: the highest bit in which the two times differ names the level, and six bits of the
        // time the slot.
        let level = (63 - (time ^ self.now).leading_zeros()) / BITS;
        let slot = (time >> (level * BITS)) as usize % SLOTS;
        let level = self.levels[level as usize].get_or_insert_with(|| Level {
            slots: (0..SLOTS).map(|_| WheelSlot::default()).collect(),
            occupied: 0,
        });
        level.occupied |= 1 << slot;
        let chunks = &mut level.slots[slot].0;
        match add(time, key, chunks.last_mut()) {
            Ok(more) => self.bytes += more,
            Err((chunk, bytes)) => {
                chunks.push(chunk);
                self.bytes += bytes;
            }
        }
    }

    /// Turns the wheel up to this time, or until there are timers that are due.
    pub(crate) fn turn(&mut self, until: u64) -> TurnResult {
        // Writers wait meanwhile, so redistribute only this number of chunks at a time.
        for _ in 0..8 {
            if let Some(chunk) = self.ready.pop_front() {
                self.bytes -= chunk.capacity();
                self.len -= timers(&chunk).count();
                return TurnResult::Due(chunk);
            }
            // EX10: redistribute the rest of the slot before `now` moves on.
            if let Some(chunk) = self.dealt.0.pop() {
                self.bytes -= chunk.capacity();
                timers(&chunk).for_each(|(time, key)| self.place(time, key));
                continue;
            }
            match self.next_slot() {
                Some(NextSlot {
                    level,
                    slot,
                    begins,
                }) if begins <= until => {
                    self.now = begins;
                    let Some(there) = &mut self.levels[level] else {
                        continue;
                    };
                    // The slot is emptied as a whole. Its timers are due, or are placed anew on
                    // lower levels.
                    there.occupied &= !(1 << slot);
                    let chunks = std::mem::take(&mut there.slots[slot]);
                    if level == 0 {
                        self.ready.extend(chunks.0);
                    } else {
                        self.dealt = chunks;
                    }
                }
                _ => {
                    // No timer is due until then. The wheel may jump, since all its slots begin
                    // later.
                    self.now = self.now.max(until);
                    return TurnResult::Done;
                }
            }
        }
        TurnResult::Stopped
    }

    /// The first slot that is not empty, and the time at which it begins.
    fn next_slot(&self) -> Option<NextSlot> {
        let mut levels = self.levels.iter().enumerate();
        // The lowest level that has timers. By EX9, its timers come first.
        levels.find_map(|(level, there)| {
            let there = there.as_ref().filter(|there| there.occupied != 0)?;
            // All timers are after `now` (EX9).
            // The slot gives six bits of the time. Those above are the bits of `now`, and those
            // below are zero.
            let slot = there.occupied.trailing_zeros() as usize;
            let shift = BITS * level as u32;
            let above = self.now >> shift >> BITS << BITS;
            Some(NextSlot {
                level,
                slot,
                begins: (above | slot as u64) << shift,
            })
        })
    }

    /// Takes the next chunk of timers out of its slot, whenever they are due. The caller adds those
    /// again that are still of use. `None` at the end of a round.
    pub(crate) fn sweep(&mut self) -> Option<TimerChunk> {
        loop {
            let Sweep { slots, chunks } = &mut self.sweep;
            // The slot is done. Go on with the next one, after the last one with the next round.
            if *chunks == 0 {
                if *slots == LEVELS * SLOTS {
                    *slots = 0;
                    return None;
                }
                let level = self.levels[*slots / SLOTS].as_ref();
                *chunks = level.map_or(0, |level| level.slots[*slots % SLOTS].0.len());
                *slots += 1;
                continue;
            }
            let (level, slot) = ((*slots - 1) / SLOTS, (*slots - 1) % SLOTS);
            let level = self.levels[level].as_mut()?;
            let there = &mut level.slots[slot].0;
            // From the last chunk to the first: those after this one have been looked at. Since
            // the last call the slot may have been emptied.
            *chunks = there.len().min(*chunks);
            let Some(at) = chunks.checked_sub(1) else {
                continue;
            };
            *chunks = at;
            let chunk = there.swap_remove(at);
            if there.is_empty() {
                level.occupied &= !(1 << slot);
            }
            self.bytes -= chunk.capacity();
            self.len -= timers(&chunk).count();
            return Some(chunk);
        }
    }

    /// A time before which no timer is due; `None` if there are no timers.
    pub(crate) fn next(&self) -> Option<u64> {
        if !self.ready.is_empty() || !self.dealt.0.is_empty() {
            return Some(self.now);
        }
        self.next_slot().map(|next| next.begins)
    }

    /// The number of timers.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The memory of the wheel in bytes, without the wheel itself.
    pub(crate) fn memory(&self) -> usize {
        let levels = self.levels.iter().flatten().count();
        self.bytes + levels * SLOTS * size_of::<WheelSlot>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All timers up to a time.
    fn due(wheel: &mut Wheel, until: u64) -> Vec<(u64, Vec<u8>)> {
        let mut all = Vec::new();
        loop {
            match wheel.turn(until) {
                TurnResult::Due(chunk) => {
                    all.extend(timers(&chunk).map(|(time, key)| (time, key.to_vec())));
                }
                TurnResult::Done => return all,
                TurnResult::Stopped => {}
            }
        }
    }

    fn numbers(seed: u64) -> impl FnMut(u64) -> u64 {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        move |below| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) % below
        }
    }

    #[test]
    fn each_timer_comes_once_when_it_is_due_and_not_before() {
        for seed in 1..40 {
            let mut random = numbers(seed);
            let (mut wheel, mut sorted) = (Wheel::default(), Vec::new());
            let mut now = 0;
            for round in 0..300 {
                for i in 0..random(20) {
                    let far = 1 << random(41);
                    let time = (now + random(far)).min((1 << 40) - 1);
                    let long = if random(50) == 0 { 5_000 } else { random(200) };
                    let mut key = vec![i as u8; long as usize];
                    key.extend_from_slice(&u64::to_le_bytes(round));
                    wheel.push(time, &key);
                    sorted.push((time, key));
                }
                now += 1 << random(30);
                assert!(wheel.next().is_none_or(|next| {
                    sorted
                        .iter()
                        .all(|(time, _)| *time >= next || *time <= wheel.now)
                }));
                let mut found = due(&mut wheel, now);
                found.sort();
                sorted.sort();
                let rest = sorted.split_off(sorted.partition_point(|(time, _)| *time <= now));
                assert_eq!(found, std::mem::replace(&mut sorted, rest));
                assert_eq!(wheel.len(), sorted.len());
            }
            assert_eq!(due(&mut wheel, 1 << 40).len(), sorted.len());
            assert_eq!((wheel.bytes, wheel.len(), wheel.next()), (0, 0, None));
        }
    }

    /// A sweep that adds all timers again changes nothing, whatever is added meanwhile.
    #[test]
    fn a_sweep_passes_each_timer() {
        let (mut wheel, mut random) = (Wheel::default(), numbers(7));
        let mut added = Vec::new();
        for n in 0..20_000u32 {
            let far = 1 << (1 + random(39));
            let time = 1 + random(far);
            wheel.push(time, &n.to_le_bytes());
            added.push((time, n.to_le_bytes().to_vec()));
        }
        let mut passed = std::collections::BTreeSet::new();
        let mut more = 20_000u32;
        while let Some(chunk) = wheel.sweep() {
            for (time, key) in timers(&chunk) {
                passed.insert((time, key.to_vec()));
                wheel.push(time, key);
            }
            let time = 1 + random(1 << 39);
            wheel.push(time, &more.to_le_bytes());
            added.push((time, more.to_le_bytes().to_vec()));
            more += 1;
        }
        assert!(added[..20_000].iter().all(|timer| passed.contains(timer)));
        assert_eq!(wheel.len(), added.len());
        let mut found = due(&mut wheel, 1 << 40);
        found.sort();
        added.sort();
        assert_eq!(found, added);
        assert_eq!((wheel.bytes, wheel.len(), wheel.next()), (0, 0, None));
        assert!(wheel.sweep().is_none());
    }

    #[test]
    fn a_large_slot_is_dealt_out_in_pieces() {
        let mut wheel = Wheel::default();
        // In a slot that begins before them: it is dealt out to lower ones.
        let (begins, time) = (1 << 20, (1 << 20) + 100);
        (0..100_000u32).for_each(|n| wheel.push(time, &n.to_le_bytes()));
        let mut turns = 0;
        while wheel.turn(begins) != TurnResult::Done {
            turns += 1;
        }
        assert_eq!(wheel.len(), 100_000);
        let mut found = 0;
        loop {
            match wheel.turn(time) {
                TurnResult::Due(chunk) => found += timers(&chunk).count(),
                TurnResult::Done => break,
                TurnResult::Stopped => turns += 1,
            }
        }
        assert_eq!(found, 100_000);
        assert!(turns > 50, "{turns} turns");
    }
}
