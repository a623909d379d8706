//! A list of objects on its way into a table.
//!
//! ```text
//!  list    chunk 0 … chunk 63 │ chunk 64 …        of 512 objects each
//!  filters    chunk by chunk; and one for each group of 64 chunks
//! ```
//!
//! 1. Objects are pushed. Adding one never moves more than a chunk.
//! 2. The list is *sealed*: no object comes any more, and of a list of several chunks each chunk
//!    and each group has a filter of its keys. From here on it is read without a lock.
//! 3. `under` finds the objects of a key: filters rule out most groups and chunks; the others are
//!    compared key by key.
//! 4. A long list is freed by the reaper, chunk by chunk.

use crate::raw;
use crate::reclaim::reaper;
use larder_term::hash::Seed;
use larder_term::object::{ObjectBuf, ObjectRef};
use smallvec::SmallVec;
use std::sync::LazyLock;

/// Objects for `begin_insert`. Holds counts of its own for their handles.
#[derive(Default)]
pub struct ObjectList {
    chunks: SmallVec<[Chunk; 1]>,
    /// What is known of the keys of each group of chunks, of a list of several.
    groups: Vec<Filter>,
    len: usize,
    bytes: usize,
}

/// Objects in a chunk.
const CHUNK: usize = if cfg!(larder_model) { 2 } else { 512 };

/// Chunks in a group.
const GROUP: usize = if cfg!(larder_model) { 2 } else { 64 };

/// A Bloom filter of the keys of a chunk, or of a group of chunks: two bits of one cache line for
/// each key. One of a hundred other keys is taken for one of them.
struct Filter(Box<[[u64; Filter::WORDS]]>);

/// The hash of a key, of which its bits are made.
#[derive(Clone, Copy)]
struct Mark(u64);

impl Mark {
    fn of(key: &[u8]) -> Mark {
        static SEED: LazyLock<Seed> = LazyLock::new(|| match cfg!(larder_model) {
            true => Seed::from_number(0),
            false => Seed::random(),
        });
        Mark(SEED.hash(key))
    }

    /// One bit of a word each, in two words of a line.
    fn bits(self) -> [(usize, u64); 2] {
        let (first, second) = (self.0 as usize, (self.0 >> 9) as usize);
        [first, second].map(|bit| (bit / 64 % Filter::WORDS, 1 << (bit % 64)))
    }
}

impl Filter {
    const WORDS: usize = 8;

    /// For this number of keys, 16 bits each.
    fn new(keys: usize) -> Filter {
        Filter(vec![[0; Self::WORDS]; keys.div_ceil(32)].into_boxed_slice())
    }

    fn line(&self, mark: Mark) -> usize {
        // The number of lines is a power of two.
        (mark.0 >> 32) as usize & (self.0.len() - 1)
    }

    fn add(&mut self, mark: Mark) {
        let line = self.line(mark);
        for (word, bit) in mark.bits() {
            self.0[line][word] |= bit;
        }
    }

    fn may_have(&self, mark: Mark) -> bool {
        let line = &self.0[self.line(mark)];
        mark.bits().iter().all(|&(word, bit)| line[word] & bit != 0)
    }
}

#[derive(Default)]
struct Chunk {
    bytes: Vec<u8>,
    /// For each object: the ends of its key and of its value in `bytes`.
    ends: Vec<(usize, usize)>,
    /// Whether a value has handles.
    handles: bool,
    /// What is known of its keys, once it is complete and one of several.
    filter: Option<Filter>,
}

impl Chunk {
    fn with_room(objects: usize, bytes: usize) -> Self {
        Chunk {
            bytes: Vec::with_capacity(bytes),
            ends: Vec::with_capacity(objects),
            handles: false,
            filter: None,
        }
    }

    /// Makes its keys known to its filter, and to its group's.
    fn index(&mut self, group: &mut Filter) {
        // A chunk is indexed once, when no object comes to it any more: its keys are in both
        // filters or in none.
        let mut filter = Filter::new(CHUNK);
        for i in 0..self.ends.len() {
            let mark = Mark::of(self.get(i).0);
            filter.add(mark);
            group.add(mark);
        }
        self.filter = Some(filter);
    }

    #[inline]
    fn push(&mut self, object: ObjectRef<'_>) {
        raw::retain_value(object.value());
        // The list has counts of its own, so the object may go as soon as this returns. A chunk
        // without handles has nothing to give back, and is not walked when it is dropped.
        self.handles |= raw::has_handles(object.value());
        self.bytes.extend_from_slice(object.key());
        let key = self.bytes.len();
        self.bytes.extend_from_slice(object.value());
        self.ends.push((key, self.bytes.len()));
    }

    #[inline]
    fn get(&self, i: usize) -> (&[u8], &[u8]) {
        let start = i.checked_sub(1).map_or(0, |before| self.ends[before].1);
        let (key, end) = self.ends[i];
        (&self.bytes[start..key], &self.bytes[key..end])
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        for i in 0..if self.handles { self.ends.len() } else { 0 } {
            raw::release_value(self.get(i).1);
        }
    }
}

impl ObjectList {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an object, encoded for the table that the list is for. Copies it.
    pub fn push(&mut self, object: &ObjectBuf) {
        self.push_ref(object.borrow());
    }

    /// As `push`.
    #[inline]
    pub fn push_ref(&mut self, object: ObjectRef<'_>) {
        if self.len.is_multiple_of(CHUNK) {
            self.add_chunk();
        }
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.push(object);
        }
        self.len += 1;
        self.bytes += object.key().len() + object.value().len();
    }

    fn add_chunk(&mut self) {
        self.index_last();
        let chunk = match self.chunks.last() {
            // As large as the one before, which is a good guess, but never so large that it costs a
            // slice.
            Some(full) => Chunk::with_room(CHUNK, full.bytes.len().min(64 << 10)),
            // Most lists are short.
            None => Chunk::with_room(16, 512),
        };
        self.chunks.push(chunk);
    }

    /// Makes the keys of the last chunk known, which is complete.
    fn index_last(&mut self) {
        let group = self.chunks.len().saturating_sub(1) / GROUP;
        if let Some(last) = self.chunks.last_mut() {
            if group == self.groups.len() {
                self.groups.push(Filter::new(GROUP * CHUNK));
            }
            last.index(&mut self.groups[group]);
        }
    }

    /// The number of objects.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// No object comes any more.
    pub(crate) fn seal(&mut self) {
        if self.is_indexed() {
            self.index_last();
        }
    }

    /// Whether `under` doesn't look at each object. A sealed list of one chunk has no need to.
    pub(crate) fn is_indexed(&self) -> bool {
        self.chunks.len() > 1
    }

    /// The numbers of the first `most` objects under a key, of a sealed list.
    ///
    /// # Complexity
    /// A look at a line of memory for each group, and for each chunk of those that seem to have the
    /// key; and at all keys of the chunks that do.
    pub(crate) fn under(&self, key: &[u8], most: usize) -> SmallVec<[usize; 8]> {
        let mark = Mark::of(key);
        // A list of one chunk has no filter: each key is compared.
        let may_have = |filter: Option<&Filter>| filter.is_none_or(|f| f.may_have(mark));
        // A group's filter rules out 64 chunks, a chunk's 512 objects.
        let groups = self.chunks.chunks(GROUP).enumerate();
        let likely = groups.filter(|(g, _)| may_have(self.groups.get(*g)));
        let chunks = likely.flat_map(|(g, chunks)| (g * GROUP..).zip(chunks));
        let likely = chunks.filter(|(_, chunk)| may_have(chunk.filter.as_ref()));
        // In the order of the list.
        let objects = likely.flat_map(|(c, chunk)| {
            let same = (0..chunk.ends.len()).filter(|&i| chunk.get(i).0 == key);
            same.map(move |i| c * CHUNK + i)
        });
        objects.take(most).collect()
    }

    /// Key and value of object `i`.
    #[inline]
    pub(crate) fn get(&self, i: usize) -> (&[u8], &[u8]) {
        self.chunks[i / CHUNK].get(i % CHUNK)
    }
}

impl Drop for ObjectList {
    fn drop(&mut self) {
        if self.chunks.len() > 1 {
            let mut chunks = std::mem::take(&mut self.chunks);
            // One chunk for each call, from the last on.
            let bytes = self.bytes + self.len * size_of::<(usize, usize)>();
            reaper::bits(bytes, move || chunks.pop().is_none());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_term::object::KeyForm;
    use larder_term::{object, term};

    /// A list of several groups, in which some keys come twice.
    #[test]
    fn objects_are_found_under_their_keys() {
        const OBJECTS: usize = 3 * GROUP * CHUNK / 2 + 77;
        const KEYS: usize = OBJECTS - 5 * CHUNK;
        let mut list = ObjectList::new();
        let mut object = ObjectBuf::new();
        let mut keys = Vec::new();
        for i in 0..OBJECTS {
            let form = KeyForm::Hash { legacy_zero: false };
            let row = term!({((i % KEYS) as i64), (i as i64)});
            object::encode(row.as_ref(), 1, form, false, &mut object).unwrap();
            keys.push(object.key().to_vec());
            list.push(&object);
        }
        list.seal();
        assert!(list.is_indexed() && list.groups.len() == 2);
        for (k, key) in keys.iter().enumerate().take(KEYS).step_by(17) {
            let found = list.under(key, 9);
            let all: Vec<usize> = (k..OBJECTS).step_by(KEYS).collect();
            assert_eq!(found[..], all[..]);
        }
        assert!(list.under(b"none", 9).is_empty());
        assert_eq!(list.under(&keys[3], 1)[..], [3]);
    }

    #[test]
    fn most_chunks_and_groups_are_known_not_to_have_a_key() {
        for keys in [CHUNK, GROUP * CHUNK] {
            let mut filter = Filter::new(keys);
            let mark = |n: usize| Mark::of(&n.to_be_bytes());
            (0..keys).for_each(|n| filter.add(mark(n)));
            assert!((0..keys).all(|n| filter.may_have(mark(n))));
            let others = keys..keys + 100_000;
            let wrong = others.filter(|&n| filter.may_have(mark(n))).count();
            assert!(wrong < 4_000, "{wrong} of 100,000");
        }
    }
}
