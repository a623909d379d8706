//! Short inserts that continue at the end of a table, while all other operations run.
//!
//! Keys from `FIRST` on come in order, and stay: whoever reads backwards and finds one finds all
//! before it.

use crate::{key, mix, Hashes};
use larder_index::{pin, Batch, Direction, Start, Unique};

/// The first key that is appended; others come and go below.
pub const FIRST: u32 = 1 << 24;

/// What is stored under a key.
fn value(k: u32) -> [u8; 2] {
    (mix(u64::from(k)) as u16).to_be_bytes()
}

fn put(index: &dyn Unique, k: u32) {
    let bytes = k.to_be_bytes();
    index.put(&pin(), key(&bytes, Hashes::Good), &value(k), &mut |_| true);
}

/// Appends keys, one after another.
pub fn append(index: &dyn Unique, keys: u32) {
    for i in 0..keys {
        put(index, FIRST + i);
    }
}

/// Puts keys below, takes them away, and puts keys again that are there at the end, all by chance.
pub fn meddle(index: &dyn Unique, steps: u32, seed: u64) {
    for step in 0..steps {
        let chance = mix(seed << 32 | u64::from(step));
        // One of 64 keys that are far apart, all below `FIRST`.
        let below = (chance >> 8) as u32 % 64 * 1000;
        match chance % 4 {
            0 | 1 => put(index, below),
            2 => {
                let bytes = below.to_be_bytes();
                index.remove(&pin(), key(&bytes, Hashes::Good), &mut |_| true);
            }
            _ => {
                // Put a key again that is at the end, or up to seven before it. It is there, so
                // nothing new comes.
                if let Some(last) = look(index, 3) {
                    put(
                        index,
                        last - last.saturating_sub(FIRST).min(chance as u32 >> 20 & 7),
                    );
                }
            }
        }
    }
}

/// Reads backwards, some entries at a time, `most` batches: keys fall, each has its value, and none
/// of those that were appended is missing. The last that was, if there is one.
pub fn look(index: &dyn Unique, most: usize) -> Option<u32> {
    let mut from = Vec::new();
    let (mut last, mut above): (Option<u32>, Option<u32>) = (None, None);
    // Turn by turn, each batch begins where the one before ended.
    for turn in 0..most {
        let start = match turn {
            0 => Start::Edge,
            _ => Start::Past(&from),
        };
        let guard = pin();
        let mut batch = Batch::default();
        index.scan(&guard, start, Direction::Backward, &mut batch);
        for i in 0..batch.len() {
            let bytes: [u8; 4] = batch.key(i).try_into().expect("keys have four bytes");
            let k = u32::from_be_bytes(bytes);
            assert_eq!(batch.value(i), value(k), "of {k}");
            if let Some(above) = above {
                // Descending without a gap: from `FIRST` on, the next key is one less.
                assert!(k < above, "{k} after {above}");
                assert!(above <= FIRST || k + 1 == above, "from {above} to {k}");
            }
            // The first appended key that is found is the last one that was appended.
            last = last.or((k >= FIRST).then_some(k));
            above = Some(k);
        }
        if batch.done {
            // The scan is complete, so it has come to the first appended key, if there is any.
            assert!(above.is_none_or(|k| k <= FIRST), "{above:?} is the first");
            break;
        }
        from.clone_from(&batch.resume);
    }
    last
}
