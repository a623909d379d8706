//! Folds: reading the next objects of a table in chunks, and checking that they are still current.
//!
//! The caller reads a chunk from a key on, shows its objects one by one, and calls
//! [`EngineTable::is_unchanged`] before each. If the table has changed, the caller discards the
//! rest of the chunk, and the next chunk begins after the last key that was shown. So every object
//! is shown as it is at its turn, although hundreds were read in one call. The result is exactly
//! that of steps from key to key.
//!
//! 1. Arm the change stamp, and then load the state word. A change that comes after the first read
//!    ends the stamp.
//! 2. Scan from the key on. The first batch has as many objects as are wanted.
//! 3. Show the objects of a batch one by one, and read the next batch, until the chunk is full: in
//!    a set or ordered_set after any object, in a bag between two keys.
//!
//! A chunk has all objects of a key or none. If a bag's key is just being changed in several
//! objects, the chunk may have a part of the change, as in every scan. In that case `is_unchanged`
//! returns `false`.

use crate::buffers::{Buffers, ThreadBuffers};
use crate::change_stamp::Stamp;
use crate::error::Error;
use crate::ids::OwnerId;
use crate::local::Local;
use crate::ops::Operation;
use crate::read_ahead::same;
use crate::scan::select::PREFETCH_DISTANCE;
use crate::stored::Stored;
use crate::table::EngineTable;
use larder_index::{Batch, Direction, Key, Start, Values};
use larder_term::object;

/// A chunk ends when its objects take this number of bytes.
const CHUNK_BYTES: usize = 16 << 10;
/// The greatest number of objects in a chunk.
const CHUNK_OBJECTS: usize = 256;
/// An impatient caller's chunk ends when the index has left out this number of entries: they take
/// about a millisecond.
const CHUNK_LEFT_OUT: usize = 2048;

/// The consumer of the objects of a chunk.
pub trait ShowObject {
    /// Called with each object, which isn't opened yet, and whether it is the first of its key.
    fn object(&mut self, object: Stored<'_>, first: bool);
}

impl<F: FnMut(Stored<'_>, bool)> ShowObject for F {
    #[inline]
    fn object(&mut self, object: Stored<'_>, first: bool) {
        self(object, first);
    }
}

/// What [`EngineTable::fold`] returns about a chunk that it has shown.
#[derive(Clone, Copy, Debug)]
pub struct FoldChunk {
    /// The argument of [`EngineTable::is_unchanged`].
    pub stamp: Stamp,
    /// The number of objects that the next chunk should have if the table doesn't change. Chunks
    /// grow until they are full: a scan copies all objects that it is asked for, so it is asked for
    /// no more than will be shown. If it is 0, there is no next one: the chunk has the last object,
    /// or none. Otherwise the next one may still be empty.
    pub next: usize,
}

/// What a chunk has so far, and what it may have.
struct ChunkBudget {
    /// The number of objects that the chunk was to have.
    count: usize,
    /// The number of objects that were shown.
    objects: usize,
    /// The bytes of these objects.
    bytes: usize,
    /// How many entries the index may still leave out, if the caller is impatient.
    left_out: usize,
}

impl ChunkBudget {
    /// Counts an object.
    #[inline]
    fn take(&mut self, bytes: usize) {
        self.objects += 1;
        self.bytes += bytes;
    }

    /// Counts the entries that the index has left out, if the caller is impatient.
    fn leave_out(&mut self, batch: &Batch) {
        if batch.may_pause {
            self.left_out = self.left_out.saturating_sub(batch.skipped);
        }
    }

    /// Whether an object was shown.
    fn is_begun(&self) -> bool {
        self.objects > 0
    }

    /// Whether the chunk is full.
    #[inline]
    fn is_over(&self) -> bool {
        let is_full = self.objects >= self.count || self.bytes >= CHUNK_BYTES;
        is_full || self.left_out == 0 && self.is_begun()
    }

    /// The number of objects that the rest of the chunk may have.
    fn left(&self) -> usize {
        self.count.saturating_sub(self.objects)
    }

    /// The number of objects for the next chunk.
    fn next(&self) -> usize {
        let fit = (CHUNK_BYTES * self.objects).checked_div(self.bytes);
        let most = fit.map_or(CHUNK_OBJECTS, |fit| fit.clamp(1, CHUNK_OBJECTS));
        self.count.saturating_mul(4).min(most)
    }
}

/// What a fold works with.
struct FoldBuffers<'b, 'g> {
    batch: &'b mut Batch<'g>,
    plain: &'b mut Vec<u8>,
    values: &'b mut Values,
    position: &'b mut Vec<u8>,
}

impl EngineTable {
    /// Shows the next objects after a key, or from the beginning if there is no key: about `count`
    /// of them, and at least one unless the fold is at its end. The key need not be in the table.
    /// A chunk also ends when its objects take 16 KiB.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`; `Long`, before an object was shown.
    ///
    /// # Consistency
    /// The object of a key is of one instant. The objects of a bag's key may show a part of a
    /// concurrent change. While `is_unchanged` returns `true`, the table has all objects as they
    /// were shown, and no others between them.
    pub fn fold(
        &self,
        local: &Local,
        who: OwnerId,
        from: Option<&[u8]>,
        direction: Direction,
        count: usize,
        show: &mut impl ShowObject,
    ) -> Result<FoldChunk, Error> {
        self.may_read(who)?;
        let guard = larder_index::pin();
        // (1) Any change from here on ends the stamp.
        let stamp = self.changes.arm();
        let op = self.begin(&guard)?;
        let direction = self.scan_direction(direction);
        // The chunk is limited by objects and by bytes, whichever comes first.
        let count = count.max(1);
        let mut wanted = ChunkBudget {
            count,
            objects: 0,
            bytes: 0,
            left_out: CHUNK_LEFT_OUT,
        };
        let mut buffers = ThreadBuffers::new();
        let Buffers {
            batch,
            plain,
            values,
            position,
            ..
        } = &mut *buffers;
        let (is_whole, is_last) = batch.lend(|batch| {
            let mut s = FoldBuffers {
                batch,
                plain,
                values,
                position,
            };
            // (2) Read the first batch.
            s.batch.want = count;
            s.batch.may_pause = local.is_impatient;
            match from {
                None => op.store.index.scan(&guard, Start::Edge, direction, s.batch),
                // The key itself was shown by the last chunk.
                Some(key) => s.go_past(&op, self.key(key), direction),
            }
            // (3) The objects of a bag's key are shown together, so that a chunk never ends between
            // them.
            let is_last = self.show_objects(&op, &mut s, direction, &mut wanted, show);
            // The batch is empty if the scan has paused among entries that the index leaves out.
            let has_paused = s.batch.is_empty() && !s.batch.done;
            s.batch.may_pause = false;
            (!has_paused || wanted.is_begun(), is_last)
        });
        if !is_whole {
            return Err(Error::Long);
        }
        let next = if is_last { 0 } else { wanted.next() };
        Ok(FoldChunk { stamp, next })
    }

    /// Whether the table has not changed since a chunk was read. `false` for a table that was
    /// dropped.
    #[inline]
    pub fn is_unchanged(&self, stamp: Stamp) -> bool {
        // The end of a table is recorded as a change (`Catalog::unlink`).
        self.changes.holds(stamp)
    }

    /// Shows the entries of a batch, and of the following ones. Returns whether the last one of the
    /// table was shown.
    #[inline]
    fn show_objects<'g>(
        &self,
        op: &Operation<'g>,
        s: &mut FoldBuffers<'_, 'g>,
        direction: Direction,
        wanted: &mut ChunkBudget,
        show: &mut impl ShowObject,
    ) -> bool {
        let (keypos, unique) = (self.keypos(), self.kind().is_unique());
        loop {
            wanted.leave_out(s.batch);
            // In a bag, the last key of a batch may have objects that are not in the batch.
            let whole = match unique {
                true => s.batch.len(),
                false => whole_keys(s.batch),
            };
            for i in 0..whole {
                s.batch.prefetch(i + PREFETCH_DISTANCE);
                let (key, value) = s.batch.entry(i);
                let first = unique || i == 0 || !same(s.batch.key(i - 1), key);
                // A chunk must end between two keys. If it ended within one, the next chunk would
                // begin after the key's last object, or show the first ones again. The limits are
                // checked after an object, so at least one is shown.
                if first && wanted.is_over() {
                    return false;
                }
                show.object(Stored::new(key, value, keypos, s.plain), first);
                wanted.take(object::plain_len(value));
            }
            // An empty batch before the end is a pause.
            if s.batch.done || s.batch.is_empty() || wanted.is_over() {
                return s.batch.done;
            }
            if unique {
                // Read no more than is still wanted.
                s.batch.want = wanted.left();
                op.store
                    .index
                    .scan_on(op.guard, direction, s.position, s.batch);
            } else if self.pass_key(op, s, whole, wanted, show) {
                return false;
            }
        }
    }

    /// Goes on in a bag after the first `whole` entries of a batch, which are those of whole keys.
    /// Shows the objects of the next key, if there are more than a batch has. Returns whether the
    /// chunk is over.
    fn pass_key<'g>(
        &self,
        op: &Operation<'g>,
        s: &mut FoldBuffers<'_, 'g>,
        whole: usize,
        wanted: &mut ChunkBudget,
        show: &mut impl ShowObject,
    ) -> bool {
        // The last key's objects are read again, including those that the batch didn't have.
        let key = s.batch.key(whole.saturating_sub(1)).to_vec();
        if whole == 0 {
            // Read all of them at one instant, however many there are, because a chunk has all
            // objects of a key or none.
            op.store.index.copy(op.guard, self.key(&key), s.values);
            for (i, value) in s.values.iter().enumerate() {
                let object = Stored::new(&key, value, self.keypos(), s.plain);
                show.object(object, i == 0);
                wanted.take(object::plain_len(value));
            }
            if wanted.is_over() {
                return true;
            }
        }
        s.batch.want = wanted.left();
        s.go_past(op, self.key(&key), Direction::Forward);
        false
    }
}

/// The number of entries of a batch whose keys surely have no further objects.
fn whole_keys(batch: &Batch) -> usize {
    if batch.done || batch.is_empty() {
        return batch.len();
    }
    let last = batch.key(batch.len() - 1);
    // Up to the last key, which may continue after the batch.
    (0..batch.len())
        .rev()
        .find(|&i| batch.key(i) != last)
        .map_or(0, |i| i + 1)
}

impl<'g> FoldBuffers<'_, 'g> {
    /// Continues the scan after a key.
    fn go_past(&mut self, op: &Operation<'g>, key: Key<'_>, direction: Direction) {
        let index = &op.store.index;
        index.scan_past(op.guard, key, direction, self.position, self.batch);
    }
}
