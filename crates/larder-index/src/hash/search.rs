//! Finding an entry in the buckets of a leaf, as a reader or as the holder of the lock.
//!
//! ```text
//!  home bucket   n, overflow | tag, offset | tag, offset | …          ← object … object
//!                     │        ╰ equal to the key's tag? then compare the key at the offset
//!                     ╰ has this eighth of the tags overflowed? then the next bucket, and so on
//! ```
//!
//! 1. The tags of the home bucket are compared with the key's, four slot entries at a time.
//! 2. For each that matches, the key is compared.
//! 3. If none of them is equal, the bucket's overflow bit for this eighth of the tags says whether
//!    an entry with such a tag may have overflowed to a later bucket (`has_overflowed`). Nearly all
//!    misses end here.
//! 4. If one may have, the next bucket is searched for displaced entries with the tag. The search
//!    ends at the first bucket whose overflow bit is clear, or when all buckets have been searched.
//!
//! There are two searches:
//!
//! * The *fast search* ([`HashView::search`]) handles self-delimiting keys of at most
//!   `LONGEST_SHORT` bytes. If it meets a handle whose tag matches, it ends: if the outside object
//!   has the key, that is the entry. Otherwise, or if the leaf has changed, it is undecided.
//! * The *general search* ([`HashView::find_general`]) handles all keys and objects. If the fast
//!   search is undecided, the general search restarts from the home bucket.
//!
//! The fast search is compiled twice. The instance for buckets with a one-byte unit is inlined in
//! each operation. The instance for larger buckets is a call: there, an object begins with an extra
//! byte that says how many bytes at its end are unused.
//!
//! Invariant: the result of a search is correct if the leaf's version is still the same afterwards.
//! If a writer changed the leaf meanwhile, the result is arbitrary, but no read went outside the
//! bucket (see [`Bucket`]).

use crate::hash::bucket::{
    entries, matches, object_offset, slot_entry, Bucket, Home, ENTRIES_PER_WORD, ENTRY_LSBS,
};
use crate::hash::hit::{Hit, PackedHit};
use crate::hash::key_rule::SearchForm;
use crate::hash::leaf::{HashLeaf, HashView};
use crate::hash::shape::*;
use crate::outside::Handle;
use crate::seqlock::words::{self, Torn};

/// Whether an entry with this tag may have overflowed the bucket with this first word. It is then
/// in a later bucket.
///
/// An entry is displaced if its home bucket is full. Each bucket between its home and its own, the
/// home included, has the overflow bit set for the eighth of the tags that contains its tag. `tag`
/// is positioned as in a slot entry; its upper three bits are the number of the eighth.
#[inline]
fn has_overflowed(head: u64, tag: u64) -> bool {
    head >> (8 + (tag >> 11 & 7)) & 1 != 0
}

/// The fast search of one bucket, for a key of one to `LONGEST_SHORT` bytes whose length is not
/// stored.
///
/// `tag` is positioned as in a slot entry. It includes [`DISPLACED`] if the bucket is not the key's
/// home. `WIDE` is set if the bucket's unit is more than a byte.
#[inline(always)]
fn search_bucket<const WIDE: bool>(
    bucket: Bucket<'_>,
    unit_shift: u32,
    tag: u64,
    key: &[u8],
) -> PackedHit {
    let unit_shift = if WIDE { unit_shift } else { 0 };
    // Broadcast the tag to the four slot entries of a word, so that one comparison tests all four.
    let tags = tag * ENTRY_LSBS;
    // Load the first eight bytes of the key. If the key is shorter, a difference is shifted left by
    // `ignored_bits` bits, so that bytes after the key don't count.
    let (first, ignored_bits) = (words::first(key), 8usize.saturating_sub(key.len()) * 8);
    // A writer may be changing this word. `n` may then be larger than the bucket; word indices wrap
    // around within the bucket, and the caller's validation fails.
    let head = bucket.word(0);
    let n = entries(head);
    // `word` has four slot entries. `first_slot` is the number of the first of them, and
    // `slot_before` is the slot entry before that one.
    let (mut first_slot, mut word, mut slot_before) = (0, head, 0);
    // (1) `hits` has the top bit of each slot entry whose tag matches. Slot entry 0 is the bucket's
    // head, so it is masked out.
    let mut hits = matches(head, tags) & !0xFFFF;
    loop {
        while hits != 0 {
            // Take the lowest match: its bit offset in the word, and its number.
            let shift = hits.trailing_zeros() as usize & 0x30;
            let i = first_slot + shift / 16;
            // The match is after the last slot entry. Free bytes or objects lie there.
            if i > n {
                break;
            }
            let slot = (word >> shift) as usize;
            let (mut from, mut spare) = (object_offset(slot, unit_shift), 0);
            // The key is in an outside object, which the caller compares (see `is_outside`).
            if slot & usize::from(OUTSIDE) != 0 {
                return PackedHit::new(i, from, from, true);
            }
            if WIDE {
                // The object's first byte is the number of unused bytes at its end.
                (from, spare) = (from + 1, bucket.load(from) as usize & 0xFF);
            }
            // (2) Keys are prefix-free, so if the object begins with the key, it has this key.
            // Most keys differ in the first eight bytes.
            let differ = (bucket.load(from) ^ first) << ignored_bits;
            if differ == 0 && (key.len() <= 8 || rest_is_equal(bucket, from, key)) {
                // Objects lie without gaps, so this one ends where the one before it begins.
                let before =
                    object_offset(((word << 16 | slot_before) >> shift) as usize, unit_shift);
                let end = if i == 1 { bucket.len() } else { before };
                let from = from + key.len();
                // If the slot entries are torn, `end` may be less than `from`. Clamp it: the length
                // of the value must not underflow before the caller validates.
                return PackedHit::new(i, from, end.saturating_sub(spare).max(from), false);
            }
            // Only the tag was equal. Continue with the next match.
            hits &= hits - 1;
        }
        // Continue with the next four slot entries, if there are any.
        first_slot += ENTRIES_PER_WORD;
        if first_slot > n {
            break;
        }
        slot_before = word >> 48;
        word = bucket.word(first_slot / ENTRIES_PER_WORD);
        hits = matches(word, tags);
    }
    // (3) The key isn't in this bucket. Unless an entry with such a tag overflowed, it isn't in a
    // later one either.
    if has_overflowed(head, tag) {
        PackedHit::OVERFLOWED
    } else {
        PackedHit::ABSENT
    }
}

/// The same as [`search_bucket`], for buckets with a unit of more than a byte.
#[inline(never)]
fn search_wide_bucket(bucket: Bucket<'_>, unit_shift: u32, tag: u64, key: &[u8]) -> PackedHit {
    search_bucket::<true>(bucket, unit_shift, tag, key)
}

/// Whether the object at `at`, in a bucket with a one-byte unit, has a key that the fast search
/// handles.
#[inline(always)]
pub(super) fn begins_with(bucket: Bucket<'_>, at: usize, key: &[u8]) -> bool {
    let ignored_bits = 8usize.saturating_sub(key.len()) * 8;
    (bucket.load(at) ^ words::first(key)) << ignored_bits == 0
        && (key.len() <= 8 || rest_is_equal(bucket, at, key))
}

/// Whether the bytes at `at` equal a key of more than eight bytes, given that the first eight are
/// equal.
#[inline]
fn rest_is_equal(bucket: Bucket<'_>, at: usize, key: &[u8]) -> bool {
    // Compare the last eight bytes first. Keys that begin alike, such as names with a common
    // prefix, usually differ at the end.
    if bucket.load(at + key.len() - 8) != words::last(key) {
        return false;
    }
    // Then compare the words in between. The last of them may overlap the eight bytes above.
    let mut done = 8;
    while done + 8 < key.len() {
        if bucket.load(at + done) != words::first(&key[done..]) {
            return false;
        }
        done += 8;
    }
    true
}

/// The fast search, or the fast read, gave up. The general one decides.
pub(crate) struct Undecided;

impl<'g> HashView<'g> {
    /// The fast search for a short key: its entry, or `None` if it is absent.
    ///
    /// # Errors
    /// `Undecided` if an outside object has the key's tag and another key.
    #[inline(always)]
    pub(crate) fn search(self, home: &Home<'g>, key: &[u8]) -> Result<Option<Hit<'g>>, Undecided> {
        let (mut bucket, tag) = (home.bucket, u64::from(home.tag) << 8);
        // (1) to (3) Search the home bucket.
        let leaf = self.leaf;
        let mut found = match leaf.class() {
            ..=UNIT_CLASS => search_bucket::<false>(bucket, 0, tag, key),
            class => search_wide_bucket(bucket, unit_shift(class), tag, key),
        };
        // (4) The entry may have been displaced to a later bucket.
        if found == PackedHit::OVERFLOWED {
            found = leaf.search_displaced(bucket, tag | u64::from(DISPLACED), key);
            if found.is_entry() {
                bucket = leaf.bucket(found.bucket_number());
            }
        }
        if !found.is_entry() {
            return Ok(None);
        }
        let hit = found.hit(bucket);
        // An outside object that only has the key's tag isn't the entry. Another one may be.
        if hit.outside && !self.is_outside(bucket, hit.from, key).unwrap_or(false) {
            return Err(Undecided);
        }
        Ok(Some(hit))
    }
}

impl<'g> HashLeaf<'g> {
    /// Step 4: searches the buckets after the home bucket. Its arguments and its result are all
    /// passed in registers.
    #[inline(never)]
    fn search_displaced(self, home: Bucket<'g>, tag: u64, key: &[u8]) -> PackedHit {
        // The last bucket is followed by the first, so the walk ends at the home bucket.
        let (shape, home) = (self.shape(), self.number(home));
        let mut at = shape.next(home);
        while at != home {
            let found = match self.class() {
                ..=UNIT_CLASS => search_bucket::<false>(self.bucket(at), 0, tag, key),
                class => search_wide_bucket(self.bucket(at), unit_shift(class), tag, key),
            };
            // Pack the bucket's number with the hit, since the caller only knows the home bucket.
            if found.is_entry() {
                return found.in_bucket(at);
            }
            // No later bucket can have the entry.
            if found != PackedHit::OVERFLOWED {
                return found;
            }
            at = shape.next(at);
        }
        PackedHit::ABSENT
    }
}

/// A key as the general search compares it: its first eight and its last eight bytes, which may
/// overlap.
#[derive(Clone, Copy)]
struct KeyWords<'a> {
    key: &'a [u8],
    first: u64,
    last: u64,
    /// How many bits a difference from `first` is shifted left, so that bytes after a short key
    /// don't count.
    ignored_bits: u32,
    length_prefixed: bool,
}

impl<'a> KeyWords<'a> {
    #[inline]
    fn new(key: &'a [u8], length_prefixed: bool) -> Self {
        let n = key.len();
        // A long key is compared by its first and its last word, before those between.
        if n > 8 {
            return KeyWords {
                key,
                first: words::first(key),
                last: words::last(key),
                ignored_bits: 0,
                length_prefixed,
            };
        }
        KeyWords {
            key,
            first: words::little(key),
            last: 0,
            // An empty key would need a shift by 64, which isn't defined. `is_at` masks it to 0,
            // and then accepts every object if the key is empty.
            ignored_bits: 64 - 8 * n as u32,
            length_prefixed,
        }
    }

    /// Whether the bucket has the key at `at`.
    #[inline]
    fn is_at(&self, bucket: Bucket<'_>, at: usize) -> bool {
        let n = self.key.len();
        // Compare the first eight bytes, then the last eight, then what lies between.
        let differ = bucket.load(at) ^ self.first;
        if differ << (self.ignored_bits & 63) != 0 {
            return n == 0;
        }
        n <= 8 || bucket.load(at + n - 8) == self.last && (n <= 16 || self.rest_is_at(bucket, at))
    }

    /// Whether the bytes between the first eight and the last eight are equal, too.
    #[inline(never)]
    fn rest_is_at(&self, bucket: Bucket<'_>, at: usize) -> bool {
        let middle = self.key[8..self.key.len() - 8].chunks(8);
        // The first eight have been compared. Whole words follow, and then the rest of one.
        let mut at = at;
        { middle }.all(|chunk| {
            at += 8;
            let differ = bucket.load(at) ^ words::little(chunk);
            differ << (64 - 8 * chunk.len()) == 0
        })
    }
}

impl<'g> HashView<'g> {
    /// Finds the entry under a key, given its hash and its home. Tries the fast search first, if
    /// the key is short enough for it.
    #[inline]
    pub(crate) fn find(
        self,
        hash: u64,
        home: &Home<'g>,
        key: &[u8],
        form: SearchForm,
    ) -> Result<Option<Hit<'g>>, Torn> {
        // The fast search decides nearly always.
        if form.short {
            if let Ok(decided) = self.search(home, key) {
                return Ok(decided);
            }
        }
        self.find_general(hash, key, form.length_prefixed)
    }

    /// Finds the entry under a key of any form, by the general search.
    #[inline]
    pub(crate) fn find_general(
        self,
        hash: u64,
        key: &[u8],
        length_prefixed: bool,
    ) -> Result<Option<Hit<'g>>, Torn> {
        let found = self.search_general(hash, key, length_prefixed);
        // An entry was found in one of the buckets.
        if found.is_entry() {
            return Ok(Some(found.hit(self.leaf.bucket(found.bucket_number()))));
        }
        if found == PackedHit::TORN {
            Err(Torn)
        } else {
            Ok(None)
        }
    }

    /// Steps 1 to 4 of the general search.
    #[inline(never)]
    fn search_general(self, hash: u64, key: &[u8], length_prefixed: bool) -> PackedHit {
        let shape = self.leaf.shape();
        let Probe { home, tag } = shape.probe(hash);
        let (mut at, mut tag) = (home, u64::from(tag) << 8);
        let wanted = KeyWords::new(key, length_prefixed);
        loop {
            // (1) to (3) Search this bucket.
            let found = self.search_bucket_general(self.leaf.bucket(at), tag, &wanted);
            match found.unwrap_or(PackedHit::TORN) {
                PackedHit::OVERFLOWED => {}
                hit if hit.is_entry() => return hit.in_bucket(at),
                end => return end,
            }
            // (4) Continue with the next bucket, where the entry would be a displaced one. If the
            // walk is back at the home bucket, all buckets have been searched.
            tag |= u64::from(DISPLACED);
            at = shape.next(at);
            if at == home {
                return PackedHit::ABSENT;
            }
        }
    }

    /// Steps 1 to 3 of the general search, in one bucket.
    #[inline(never)]
    fn search_bucket_general(
        &self,
        bucket: Bucket<'g>,
        tag: u64,
        wanted: &KeyWords<'_>,
    ) -> Result<PackedHit, Torn> {
        // The same walk over slot entries as in `search_bucket`.
        let tags = tag * ENTRY_LSBS;
        let head = bucket.word(0);
        let n = entries(head);
        let (mut first, mut word) = (0, head);
        // (1) Find the slot entries with an equal tag. Slot entry 0 is the bucket's head, so it is
        // masked out.
        let mut hits = matches(head, tags) & !0xFFFF;
        loop {
            while hits != 0 {
                let shift = hits.trailing_zeros() as usize & 0x30;
                let i = first + shift / 16;
                // The match is after the last slot entry. Free bytes or objects lie there.
                if i > n {
                    break;
                }
                // (2) Compare the key.
                let hit = self.check_entry(bucket, i, (word >> shift) as usize, wanted)?;
                if let Some(found) = hit {
                    return Ok(found);
                }
                hits &= hits - 1;
            }
            first += ENTRIES_PER_WORD;
            if first > n {
                break;
            }
            word = bucket.word(first / ENTRIES_PER_WORD);
            hits = matches(word, tags);
        }
        // (3) The key isn't in this bucket.
        Ok(if has_overflowed(head, tag) {
            PackedHit::OVERFLOWED
        } else {
            PackedHit::ABSENT
        })
    }

    /// Step 2 of the general search: slot entry `i` as a hit, if its object has the wanted key.
    fn check_entry(
        &self,
        bucket: Bucket<'g>,
        i: usize,
        slot: usize,
        wanted: &KeyWords<'_>,
    ) -> Result<Option<PackedHit>, Torn> {
        let unit_shift = unit_shift(self.leaf.class());
        let mut from = object_offset(slot, unit_shift);
        // The bucket only has a handle. Compare the key of the outside object.
        if slot & usize::from(OUTSIDE) != 0 {
            let same = self.is_outside(bucket, from, wanted.key)?;
            return Ok(same.then_some(PackedHit::new(i, from, from, true)));
        }
        // Objects lie without gaps, so this one ends where the one before it begins.
        let mut end = match i {
            1 => bucket.len(),
            _ => object_offset(slot_entry(bucket, i - 1), unit_shift),
        };
        // In a bucket with a larger unit, the object's first byte is the number of unused bytes at
        // its end.
        if unit_shift > 0 {
            end = end.saturating_sub(bucket.load(from) as usize & 0xFF);
            from += 1;
        }
        // A different length rules the entry out without a comparison of keys.
        if wanted.length_prefixed {
            let prefix = LengthPrefix::decode(bucket.load(from));
            if prefix.key_len != wanted.key.len() {
                return Ok(None);
            }
            from += prefix.size;
        }
        // Keys are either prefix-free or of equal length here, so if the object begins with the
        // key, it has this key. If the key would reach beyond `end`, the object is shorter than the
        // key, or the slot entries are torn.
        let value = from + wanted.key.len();
        if value > end || !wanted.is_at(bucket, from) {
            return Ok(None);
        }
        Ok(Some(PackedHit::new(i, value, end, false)))
    }

    /// Whether the handle at `at` leads to an outside object with this key.
    #[inline(never)]
    fn is_outside(&self, bucket: Bucket<'g>, at: usize, key: &[u8]) -> Result<bool, Torn> {
        // `object` validates the version before it follows the handle, so a torn handle is an error
        // here.
        let handle = Handle::from_bits(bucket.load(at));
        Ok(self.object(handle)?.position() == key)
    }
}
