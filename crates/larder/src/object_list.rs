//! A list of objects on its way into a table.

use crate::raw;
use crate::reaper;
use larder_term::hash::Seed;
use larder_term::object::{ObjectBuf, ObjectRef};
use smallvec::SmallVec;
use std::sync::LazyLock;

/// Objects for `begin_insert`. Holds counts of its own for their handles.
///
/// They lie in chunks of `CHUNK` objects, each a run of memory: adding one never moves more than a
/// chunk, and a long list is freed by the reaper, chunk by chunk.
#[derive(Default)]
pub struct ObjectList {
    chunks: SmallVec<[Chunk; 1]>,
    len: usize,
    bytes: usize,
}

/// Objects in a chunk.
const CHUNK: usize = if cfg!(larder_model) { 2 } else { 512 };

/// What tells of most keys that none of a chunk's objects is under them: two bits of one cache line
/// for each of its keys. Of other keys one of a hundred is taken for one of them.
struct Filter([[u64; Filter::WORDS]; Filter::LINES]);

impl Filter {
    const LINES: usize = 16;
    const WORDS: usize = 8;

    fn hash(key: &[u8]) -> u64 {
        static SEED: LazyLock<Seed> = LazyLock::new(|| match cfg!(larder_model) {
            true => Seed::from_number(0),
            false => Seed::random(),
        });
        SEED.hash(key)
    }

    /// A line, and two bits of it.
    fn place(hash: u64) -> (usize, [usize; 2]) {
        let bits = [hash as usize % 512, (hash >> 9) as usize % 512];
        ((hash >> 32) as usize % Self::LINES, bits)
    }

    fn add(&mut self, hash: u64) {
        let (line, bits) = Self::place(hash);
        for bit in bits {
            self.0[line][bit / 64] |= 1 << (bit % 64);
        }
    }

    fn may_have(&self, hash: u64) -> bool {
        let (line, bits) = Self::place(hash);
        let line = &self.0[line];
        bits.iter().all(|bit| line[bit / 64] >> (bit % 64) & 1 == 1)
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
    filter: Option<Box<Filter>>,
}

impl Chunk {
    fn with_room(bytes: usize) -> Self {
        Chunk {
            bytes: Vec::with_capacity(bytes),
            ends: Vec::with_capacity(CHUNK),
            handles: false,
            filter: None,
        }
    }

    fn index(&mut self) {
        let mut filter = Box::new(Filter([[0; Filter::WORDS]; Filter::LINES]));
        for i in 0..self.ends.len() {
            filter.add(Filter::hash(self.get(i).0));
        }
        self.filter = Some(filter);
    }

    #[inline]
    fn push(&mut self, object: ObjectRef<'_>) {
        raw::retain_value(object.value());
        self.handles |= raw::has_handles(object.value());
        self.bytes.extend_from_slice(object.key());
        let key = self.bytes.len();
        self.bytes.extend_from_slice(object.value());
        self.ends.push((key, self.bytes.len()));
    }

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
        let chunk = match self.chunks.last_mut() {
            // As large as the one before, which is a good guess, but never so large that it costs a
            // slice.
            Some(full) => {
                full.index();
                Chunk::with_room(full.bytes.len().min(64 << 10))
            }
            None => Chunk::default(),
        };
        self.chunks.push(chunk);
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
        if let [_, .., last] = &mut self.chunks[..] {
            last.index();
        }
    }

    /// Whether `under` doesn't look at each object. A sealed list of one chunk has no need to.
    pub(crate) fn is_indexed(&self) -> bool {
        self.chunks.len() > 1
    }

    /// The numbers of the first `most` objects under a key, of a sealed list.
    ///
    /// # Complexity
    /// A look at a line of memory for each chunk, and at all keys of those that seem to have it.
    pub(crate) fn under(&self, key: &[u8], most: usize) -> SmallVec<[usize; 8]> {
        let hash = Filter::hash(key);
        let may_have = |chunk: &Chunk| chunk.filter.as_ref().is_none_or(|f| f.may_have(hash));
        let chunks = self.chunks.iter().enumerate();
        let likely = chunks.filter(|(_, chunk)| may_have(chunk));
        let objects = likely.flat_map(|(c, chunk)| {
            let same = (0..chunk.ends.len()).filter(|&i| chunk.get(i).0 == key);
            same.map(move |i| c * CHUNK + i)
        });
        objects.take(most).collect()
    }

    /// Key and value of object `i`.
    pub(crate) fn get(&self, i: usize) -> (&[u8], &[u8]) {
        self.chunks[i / CHUNK].get(i % CHUNK)
    }
}

impl Drop for ObjectList {
    fn drop(&mut self) {
        if self.chunks.len() > 1 {
            let mut chunks = std::mem::take(&mut self.chunks);
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

    #[test]
    fn objects_are_found_under_their_keys() {
        let key_of = |k: i64| k % 1700;
        let mut list = ObjectList::new();
        let mut object = ObjectBuf::new();
        let mut keys = Vec::new();
        for k in 0..2000 {
            let form = KeyForm::Hash { legacy_zero: false };
            let row = term!({(key_of(k)), (k)});
            object::encode(row.as_ref(), 1, form, false, &mut object).unwrap();
            keys.push(object.key().to_vec());
            list.push(&object);
        }
        list.seal();
        assert!(list.is_indexed());
        for (k, key) in keys.iter().enumerate().take(1700) {
            let found = list.under(key, 9);
            let all: Vec<usize> = (k..2000).step_by(1700).collect();
            assert_eq!(found[..], all[..]);
        }
        assert!(list.under(b"none", 9).is_empty());
        assert_eq!(list.under(&keys[3], 1)[..], [3]);
    }

    #[test]
    fn most_chunks_are_known_not_to_have_a_key() {
        let mut filter = Filter([[0; Filter::WORDS]; Filter::LINES]);
        let hash = |n: u32| Filter::hash(&n.to_be_bytes());
        (0..512).for_each(|n| filter.add(hash(n)));
        assert!((0..512).all(|n| filter.may_have(hash(n))));
        let wrong = (512..100_000).filter(|&n| filter.may_have(hash(n))).count();
        assert!(wrong < 4_000, "{wrong} of 100,000");
    }
}
