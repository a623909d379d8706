//! A test of `Unique::is_unchanged`: batches that an index says are still valid, while others
//! write.
//!
//! ```text
//!   writer   for each n: removes key n, puts another, then stores n + 1 as its progress
//!   reader   1. reads a batch
//!            2. of some batches, removes the first key itself, and goes on with the others
//!            3. loads the writer's progress
//!            4. asks whether the batch is still valid
//!            5. if so, checks that no key of it is below the progress
//! ```

use crate::{key, key_bytes, mix, put, remove, Hashes};
use larder_index::sync::atomic::{AtomicU64, Ordering::SeqCst};
use larder_index::{pin, seen_after_removals, Batch, Direction, Start, Unique};

// Ordering, for all of this file: SeqCst. The writer's progress must not be visible before its
// writes.

/// The keys from here on are removed by readers, and put back.
const SPARE: u16 = 0x8000;

/// Fills an index with the keys 0 to `keys`, each with its number as the value, and with keys that
/// readers remove.
pub fn fill(index: &dyn Unique, keys: u16) {
    (0..keys).for_each(|n| put_number(index, n));
    (SPARE..=SPARE + keys / 4).for_each(|n| put_number(index, n));
}

fn put_number(index: &dyn Unique, n: u16) {
    put(index, key(&key_bytes(n), Hashes::Good), &n.to_be_bytes());
}

/// The writer: replaces each key below `keys` by one beyond, and stores its progress to `removed`.
pub fn exchange(index: &dyn Unique, keys: u16, removed: &AtomicU64) {
    for n in 0..keys {
        assert!(remove(index, key(&key_bytes(n), Hashes::Good)));
        put_number(index, keys + n);
        removed.store(u64::from(n) + 1, SeqCst);
    }
}

/// The reader. Returns how many batches were still valid, and how many were not.
pub fn look(index: &dyn Unique, removed: &AtomicU64, times: u64, salt: u64) -> (u64, u64) {
    let mut found = (0, 0);
    for i in 0..times {
        let (guard, mut batch) = (pin(), Batch::default());
        // 1. Read a batch of one to five entries.
        batch.want = 1 + (mix(i ^ salt) % 5) as usize;
        // Start at a random hash, as a position of two bytes.
        let from = (mix(i.wrapping_mul(salt | 1)) as u16).to_be_bytes();
        index.scan(&guard, Start::At(&from), Direction::Forward, &mut batch);
        // An index may give no state with a batch. Then there is nothing to ask about.
        let Some(seen) = batch.seen.filter(|_| !batch.is_empty()) else {
            continue;
        };
        let number = |at| batch.value(at).try_into().map_or(0, u16::from_be_bytes);
        let key_at = |at| key(batch.key(at), Hashes::Good);
        // 2. If the first key is one of those for readers, remove it.
        let removes = batch.len() > 1 && number(0) >= SPARE && remove(index, key_at(0));
        // 3. All numbers below the writer's progress are removed. Load it before asking, so that a
        //    batch which is still valid can't have any of them.
        let before = removed.load(SeqCst);
        let first = usize::from(removes);
        let seen = match removes {
            true => seen_after_removals(key_at(first), seen),
            false => Some(seen),
        };
        // 4. The answer `false` is always allowed. How often it comes is counted.
        let holds = seen.is_some_and(|seen| index.is_unchanged(&pin(), key_at(first), seen));
        if removes {
            put_number(index, number(0));
        }
        if !holds {
            found.1 += 1;
            continue;
        }
        found.0 += 1;
        // 5. The batch is still valid, so none of its entries was removed before it was asked
        //    about.
        for at in first..batch.len() {
            let number = number(at);
            assert!(u64::from(number) >= before, "{number} went before {before}");
        }
    }
    found
}
