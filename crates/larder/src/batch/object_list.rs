//! A list of objects that is being inserted into a table.
//!
//! ```text
//!  list    chunk 0 … chunk 63 │ chunk 64 …        of 512 objects each
//!  filters    chunk by chunk; and one for each group of 64 chunks
//! ```
//!
//! 1. Objects are pushed. A push moves at most one chunk.
//! 2. The list is *sealed*: no further object is pushed. If there are several chunks, each chunk
//!    and each group gets a filter of its keys. From here on the list is read without a lock.
//!    The filters of the first few chunks are made together, and those of others when the chunk is
//!    complete: the filter of a short list's only group is as small as its keys permit.
//! 3. `under` finds the objects of a key: filters exclude most groups and chunks. In the others,
//!    each key is compared.
//! 4. The reaper frees a long list, chunk by chunk. The memory of a short one is freed at once, or
//!    kept for the thread's next list.

use crate::raw;
use crate::reclaim::reaper;
use larder_term::hash::Seed;
use larder_term::object::{self, ObjectBuf, ObjectRef};
use smallvec::SmallVec;
use std::cell::Cell;
use std::ops::Range;
use std::sync::LazyLock;

/// Objects for `begin_insert`. The list owns counts of their handles.
#[derive(Default)]
pub struct ObjectList {
    /// `None` while there are no objects. One word, since a list is moved several times.
    content: Option<Box<ListContent>>,
}

/// The objects of a list.
#[derive(Default)]
struct ListContent {
    chunks: SmallVec<[ListChunk; 1]>,
    /// A filter of the keys of each group of chunks, if the list has several chunks.
    groups: Vec<KeyFilter>,
    len: usize,
    /// The bytes of all keys and values, and those of the longest object.
    bytes: usize,
    longest: usize,
    /// Whether a value has handles. What they lead to may take long to free.
    has_handles: bool,
    /// The number of chunks that have filters: the first ones.
    indexed: usize,
    /// About how many different keys the chunks with filters have.
    keys: usize,
}

thread_local! {
    /// An empty content, with the memory of an earlier one.
    static SPARE: Cell<Option<Box<ListContent>>> = const { Cell::new(None) };
}

/// A thread keeps memory for at most this number of bytes of objects.
const MAX_KEPT_CAPACITY: usize = 1 << 14;

/// The number of objects in a chunk.
const CHUNK: usize = if cfg!(larder_model) { 2 } else { 512 };

/// The number of chunks of a list that is still short. Its filters are made when it is sealed, and
/// its memory is freed by the thread that drops it.
const FEW: usize = if cfg!(larder_model) { 2 } else { 4 };

/// The most bytes of such a list whose memory isn't freed by the reaper, if there are no handles in
/// it. A list of one chunk is never freed by the reaper.
const FEW_BYTES: usize = 256 << 10;

/// The number of chunks in a group.
const GROUP: usize = if cfg!(larder_model) { 2 } else { 64 };

/// A Bloom filter of the keys of a chunk, or of a group of chunks. Each key sets two bits of one
/// cache line. Its false-positive rate is about a hundredth.
struct KeyFilter(Box<[[u64; KeyFilter::WORDS]]>);

/// The hash of a key, which determines its bits.
#[derive(Clone, Copy)]
struct HashBits(u64);

impl HashBits {
    fn of(key: &[u8]) -> HashBits {
        Self::by(Self::seed(), key)
    }

    /// The seed of all filters.
    fn seed() -> &'static Seed {
        static SEED: LazyLock<Seed> = LazyLock::new(|| match cfg!(larder_model) {
            true => Seed::from_number(0),
            false => Seed::random(),
        });
        &SEED
    }

    #[inline]
    fn by(seed: &Seed, key: &[u8]) -> HashBits {
        HashBits(seed.hash(key))
    }

    /// The two bits, each in a word of the line.
    fn bits(self) -> [(usize, u64); 2] {
        let (first, second) = (self.0 as usize, (self.0 >> 9) as usize);
        [first, second].map(|bit| (bit / 64 % KeyFilter::WORDS, 1 << (bit % 64)))
    }
}

impl KeyFilter {
    const WORDS: usize = 8;

    /// Makes a filter for this number of keys, with 16 bits for each.
    fn new(keys: usize) -> KeyFilter {
        KeyFilter(vec![[0; Self::WORDS]; keys.div_ceil(32)].into_boxed_slice())
    }

    fn line(&self, hash: HashBits) -> usize {
        // The number of lines is a power of two.
        (hash.0 >> 32) as usize & (self.0.len() - 1)
    }

    fn add(&mut self, hash: HashBits) {
        let line = self.line(hash);
        for (word, bit) in hash.bits() {
            self.0[line][word] |= bit;
        }
    }

    fn may_have(&self, hash: HashBits) -> bool {
        let line = &self.0[self.line(hash)];
        hash.bits().iter().all(|&(word, bit)| line[word] & bit != 0)
    }
}

#[derive(Default)]
struct ListChunk {
    bytes: Vec<u8>,
    /// For each object: the ends of its key and of its value in `bytes`.
    ends: Vec<(usize, usize)>,
    /// Whether a value has handles.
    handles: bool,
    /// A filter of its keys, once the chunk is complete and one of several.
    filter: Option<KeyFilter>,
}

impl ListChunk {
    fn with_capacity(objects: usize, bytes: usize) -> Self {
        ListChunk {
            bytes: Vec::with_capacity(bytes),
            ends: Vec::with_capacity(objects),
            handles: false,
            filter: None,
        }
    }

    /// Adds its keys to its filter, and to the filter of its group, which is the last one. Returns
    /// about how many of them are neither in that group nor in the first one.
    fn index(&mut self, groups: &mut [KeyFilter]) -> usize {
        // A chunk is indexed once, when it is complete. So its keys are in both filters or in
        // neither.
        let (mut filter, seed) = (KeyFilter::new(CHUNK), HashBits::seed());
        let mut new = 0;
        for (key, _) in self.run(0..self.ends.len()) {
            let hash = HashBits::by(seed, key);
            filter.add(hash);
            if let Some((group, before)) = groups.split_last_mut() {
                let is_known = before.first().is_some_and(|first| first.may_have(hash));
                new += usize::from(!is_known && !group.may_have(hash));
                group.add(hash);
            }
        }
        self.filter = Some(filter);
        new
    }

    #[inline]
    fn push(&mut self, object: ObjectRef<'_>) {
        // The list owns counts, so the object may be dropped after this returns. A chunk without
        // handles has nothing to release, and isn't walked when it is dropped.
        if raw::has_handles(object.value()) {
            raw::retain_value(object.value());
            self.handles = true;
        }
        self.bytes.extend_from_slice(object.key());
        let key = self.bytes.len();
        self.bytes.extend_from_slice(object.value());
        self.ends.push((key, self.bytes.len()));
    }

    /// Where object `i` begins.
    #[inline]
    fn start(&self, i: usize) -> usize {
        i.checked_sub(1).map_or(0, |before| self.ends[before].1)
    }

    #[inline]
    fn get(&self, i: usize) -> (&[u8], &[u8]) {
        let start = self.start(i);
        let (key, end) = self.ends[i];
        (&self.bytes[start..key], &self.bytes[key..end])
    }

    /// Key and value of some objects. Each begins where the one before it ends.
    #[inline]
    fn run(&self, range: Range<usize>) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut start = self.start(range.start);
        self.ends[range].iter().map(move |&(key, end)| {
            let object = (&self.bytes[start..key], &self.bytes[key..end]);
            start = end;
            object
        })
    }
}

impl ListChunk {
    /// Removes all objects, and keeps the memory.
    fn clear(&mut self) {
        if self.handles {
            (0..self.ends.len()).for_each(|i| raw::release_value(self.get(i).1));
            self.handles = false;
        }
        self.bytes.clear();
        self.ends.clear();
        self.filter = None;
    }
}

impl Drop for ListChunk {
    fn drop(&mut self) {
        self.clear();
    }
}

impl ListContent {
    /// Adds a copy of an object.
    #[inline]
    fn push(&mut self, object: ObjectRef<'_>) {
        // A chunk is never enlarged, so a push moves no object of another chunk.
        if self.len.is_multiple_of(CHUNK) {
            self.add_chunk();
        }
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.push(object);
        }
        self.len += 1;
        let size = object.key().len() + object.value().len();
        self.bytes += size;
        self.longest = self.longest.max(size);
        self.has_handles |= object::value_has_handles(object.value());
    }

    fn add_chunk(&mut self) {
        let chunk = match self.chunks.last() {
            // The first chunk of an earlier list.
            Some(_) if self.len == 0 => return,
            // Reserve the size of the previous chunk, which is a good guess, but limit it so that
            // the allocation doesn't take a slice.
            Some(full) => ListChunk::with_capacity(CHUNK, full.bytes.len().min(64 << 10)),
            // Most lists are short.
            None => ListChunk::with_capacity(16, 512),
        };
        // Long keys take long to hash: not all of them when the list is sealed.
        if self.chunks.len() >= FEW || self.bytes > FEW_BYTES {
            self.index(GROUP);
        }
        self.chunks.push(chunk);
    }

    /// Adds the keys of the chunks that have no filter yet, which are complete, to the filters. A
    /// group has at most so many chunks, a power of two.
    fn index(&mut self, in_group: usize) {
        for (number, chunk) in self.chunks.iter_mut().enumerate().skip(self.indexed) {
            let group = number / GROUP;
            if group == self.groups.len() {
                self.groups.push(KeyFilter::new(in_group * CHUNK));
            }
            self.keys += chunk.index(&mut self.groups[..=group]);
        }
        self.indexed = self.chunks.len();
    }

    /// Gives every chunk a filter.
    fn seal(&mut self) {
        match self.chunks.len() {
            few @ ..=FEW => self.index(few.next_power_of_two()),
            _ => self.index(GROUP),
        }
    }

    /// Removes all objects of a list of one chunk.
    fn clear(&mut self) {
        self.chunks.iter_mut().for_each(ListChunk::clear);
        self.groups.clear();
        (self.len, self.bytes, self.longest) = (0, 0, 0);
        (self.indexed, self.keys, self.has_handles) = (0, 0, false);
    }

    /// Whether freeing it takes long, so that it is left to the reaper.
    fn is_long_to_free(&self) -> bool {
        let is_large = self.bytes > FEW_BYTES || self.has_handles;
        self.chunks.len() > FEW || (self.chunks.len() > 1 && is_large)
    }

    /// Whether a thread keeps the memory.
    fn is_kept(&self) -> bool {
        let [chunk] = &self.chunks[..] else {
            return false;
        };
        chunk.bytes.capacity() <= MAX_KEPT_CAPACITY && self.groups.capacity() == 0
    }
}

impl ObjectList {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a copy of an object, which was encoded for the list's table.
    pub fn push(&mut self, object: &ObjectBuf) {
        self.push_ref(object.borrow());
    }

    /// Like `push`.
    #[inline]
    pub fn push_ref(&mut self, object: ObjectRef<'_>) {
        let spare = || {
            SPARE
                .try_with(Cell::take)
                .ok()
                .flatten()
                .unwrap_or_default()
        };
        self.content.get_or_insert_with(spare).push(object);
    }

    #[inline]
    fn chunks(&self) -> &[ListChunk] {
        self.content.as_ref().map_or(&[], |content| &content.chunks)
    }

    /// The filters of groups of chunks.
    fn groups(&self) -> &[KeyFilter] {
        self.content.as_ref().map_or(&[], |content| &content.groups)
    }

    /// The number of objects.
    #[inline]
    pub fn len(&self) -> usize {
        self.content.as_ref().map_or(0, |content| content.len)
    }

    /// The number of bytes of all keys and values.
    pub(crate) fn bytes(&self) -> usize {
        self.content.as_ref().map_or(0, |content| content.bytes)
    }

    /// About how many different keys the list has, if that is known: of a short list it isn't. A
    /// key that is in several groups of chunks, but not in the first one, is counted several times.
    pub(crate) fn keys(&self) -> Option<usize> {
        let indexed = self.content.as_ref().filter(|_| self.is_indexed());
        indexed.map(|content| content.keys)
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.content.is_none()
    }

    /// Completes the list: no further object is pushed.
    pub(crate) fn seal(&mut self) {
        if self.is_indexed() {
            self.content.iter_mut().for_each(|content| content.seal());
        }
    }

    /// Whether it has many objects.
    pub(crate) fn is_long(&self) -> bool {
        self.chunks().len() > FEW
    }

    /// Whether `under` uses filters. A list of one chunk needs none.
    pub(crate) fn is_indexed(&self) -> bool {
        self.chunks().len() > 1
    }

    /// Returns the numbers of the first `most` objects under a key. The list must be sealed.
    ///
    /// # Complexity
    /// One cache line for each group, one for each chunk of the groups that may have the key, and
    /// all keys of the chunks that may have it.
    pub(crate) fn under(&self, key: &[u8], most: usize) -> SmallVec<[usize; 8]> {
        self.numbers_under(key, 0).take(most).collect()
    }

    /// Whether an object from number `from` on has this key. The list must be sealed.
    pub(crate) fn has_key_from(&self, key: &[u8], from: usize) -> bool {
        self.numbers_under(key, from).next().is_some()
    }

    /// The numbers of the objects under a key, from `from` on, in the order of the list.
    fn numbers_under<'l>(&'l self, key: &'l [u8], from: usize) -> impl Iterator<Item = usize> + 'l {
        let hash = HashBits::of(key);
        // A list of one chunk has no filter, so each key is compared.
        let may_have = move |filter: Option<&KeyFilter>| filter.is_none_or(|f| f.may_have(hash));
        // The filter of a group excludes 64 chunks, that of a chunk 512 objects.
        let (chunk, group) = (from / CHUNK, from / CHUNK / GROUP);
        let groups = self.chunks().chunks(GROUP).enumerate().skip(group);
        let likely = groups.filter(move |(g, _)| may_have(self.groups().get(*g)));
        let chunks = likely.flat_map(|(g, chunks)| (g * GROUP..).zip(chunks));
        let likely = chunks.filter(move |(c, part)| *c >= chunk && may_have(part.filter.as_ref()));
        likely.flat_map(move |(c, part)| {
            let first = from.saturating_sub(c * CHUNK);
            let same = (first..part.ends.len()).filter(move |&i| part.get(i).0 == key);
            same.map(move |i| c * CHUNK + i)
        })
    }

    /// Key and value of object `i`.
    #[inline]
    pub(crate) fn get(&self, i: usize) -> (&[u8], &[u8]) {
        self.chunks()[i / CHUNK].get(i % CHUNK)
    }

    /// Key and value of the objects from `range.start` on, up to the end of the range or of the
    /// chunk.
    #[inline]
    pub(crate) fn run(&self, range: Range<usize>) -> impl Iterator<Item = (&[u8], &[u8])> {
        let (chunk, from) = (&self.chunks()[range.start / CHUNK], range.start % CHUNK);
        chunk.run(from..(from + range.len()).min(chunk.ends.len()))
    }

    /// The number of bytes of the longest object.
    pub(crate) fn longest(&self) -> usize {
        self.content.as_ref().map_or(0, |content| content.longest)
    }

    /// The number of bytes of object `i`; 0 if there is none.
    #[inline]
    pub(crate) fn size(&self, i: usize) -> usize {
        if i >= self.len() {
            return 0;
        }
        let (key, value) = self.get(i);
        key.len() + value.len()
    }
}

impl Drop for ObjectList {
    fn drop(&mut self) {
        let Some(mut content) = self.content.take() else {
            return;
        };
        if content.is_kept() {
            content.clear();
            // If the thread is ending, the variable is destroyed. Then the memory is freed.
            let _ = SPARE.try_with(|place| place.set(Some(content)));
        } else if content.is_long_to_free() {
            let mut chunks = std::mem::take(&mut content.chunks);
            // Each call frees one chunk, starting with the last one.
            let bytes = content.bytes + content.len * size_of::<(usize, usize)>();
            reaper::bits(bytes, move || chunks.pop().is_none());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_term::object::KeyForm;
    use larder_term::term;

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
        assert!(list.is_indexed() && list.groups().len() == 2);
        // The filters take some keys for others.
        let counted = list.keys().unwrap();
        assert!(
            (KEYS * 97 / 100..=KEYS).contains(&counted),
            "{counted} of {KEYS}"
        );
        for (k, key) in keys.iter().enumerate().take(KEYS).step_by(17) {
            let found = list.under(key, 9);
            let all: Vec<usize> = (k..OBJECTS).step_by(KEYS).collect();
            assert_eq!(found[..], all[..]);
        }
        assert!(list.under(b"none", 9).is_empty());
        assert_eq!(list.under(&keys[3], 1)[..], [3]);
        // The key of object 3 comes again after `KEYS` objects, and no more.
        assert!(list.has_key_from(&keys[3], 4) && list.has_key_from(&keys[3], 3 + KEYS));
        assert!(!list.has_key_from(&keys[3], 4 + KEYS));
    }

    /// Lists of one chunk up to more than a few, whose filters are made at different times.
    #[test]
    fn a_list_of_any_length_is_read_in_runs_and_by_key() {
        let form = KeyForm::Hash { legacy_zero: false };
        for chunks in 1..=FEW + 2 {
            let (mut list, mut object) = (ObjectList::new(), ObjectBuf::new());
            let len = chunks * CHUNK - 1;
            for i in 0..len as i64 {
                object::encode(term!({(i), (-i)}).as_ref(), 1, form, false, &mut object).unwrap();
                list.push(&object);
            }
            list.seal();
            let filters = list.chunks().iter().filter(|chunk| chunk.filter.is_some());
            assert_eq!(filters.count(), if chunks == 1 { 0 } else { chunks });
            assert_eq!(list.keys().is_some(), chunks > 1);
            assert!(list
                .keys()
                .is_none_or(|keys| (len * 97 / 100..=len).contains(&keys)));
            // A run ends with its range, or with its chunk.
            for (from, end, read) in [(0, 1, 1), (CHUNK - 2, len, 2), (len - 1, len, 1)] {
                let read = read.min(end - from);
                let run: Vec<_> = list.run(from..end).collect();
                let each: Vec<_> = (from..from + read).map(|i| list.get(i)).collect();
                assert_eq!(run, each, "{chunks} chunks, from {from}");
            }
            for i in (0..len).step_by(17) {
                assert_eq!(list.under(list.get(i).0, 2)[..], [i]);
            }
        }
    }

    #[test]
    fn most_chunks_and_groups_are_known_not_to_have_a_key() {
        for keys in [CHUNK, GROUP * CHUNK] {
            let mut filter = KeyFilter::new(keys);
            let hash = |n: usize| HashBits::of(&n.to_be_bytes());
            (0..keys).for_each(|n| filter.add(hash(n)));
            assert!((0..keys).all(|n| filter.may_have(hash(n))));
            let others = keys..keys + 100_000;
            let wrong = others.filter(|&n| filter.may_have(hash(n))).count();
            assert!(wrong < 4_000, "{wrong} of 100,000");
        }
    }
}
