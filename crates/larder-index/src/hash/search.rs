//! How an entry is found in the buckets of a leaf, by a reader or by the holder of the lock.
//!
//! ```text
//!  home bucket   n, passed | tag, place | tag, place | …            ← object … object
//!                     │        ╰ equal to the key's tag? then compare the key at the place
//!                     ╰ was this eighth of the tags passed on? then the next bucket, and so on
//! ```
//!
//! 1. The tags of the home bucket are compared with the key's, four slot entries at a time.
//! 2. For each that matches, the key is compared.
//! 3. If none is the key's, the bucket says whether it passed on entries with tags of this eighth
//!    (`passed_on`). Nearly all misses end here.
//! 4. If it did, the next bucket is searched for displaced entries with the tag, and so on until a
//!    bucket has passed on no such entry or all were searched.
//!
//! There are two searches:
//!
//! * The *fast search* ([`HashLeaf::search`]) is for keys of at most `LONGEST_SHORT` bytes that
//!   end themselves. It follows no handle, so it can't fail; it is undecided if it meets one.
//! * The *general search* ([`HashView::find_general`]) is for all keys and objects. If the fast
//!   search is undecided, the general one restarts from the home bucket.
//!
//! The fast search is compiled once for buckets whose unit is a byte, in line in each operation,
//! and once for larger ones, as a call: their objects begin with a byte of their own.
//!
//! Invariant: what a search says of a leaf whose version has not changed since is true. If a writer
//! was at work, it says anything; no read leaves the leaf (see [`Bucket`]).

use crate::hash::bucket::{
    entries, matches, place, slot_entry, Bucket, Home, EACH, ENTRIES_PER_WORD,
};
use crate::hash::hit::{Hit, PackedHit};
use crate::hash::key_rule::KeyForm;
use crate::hash::leaf::{HashLeaf, HashView};
use crate::hash::shape::*;
use crate::outside::Handle;
use crate::seqlock::words::{self, Torn};

/// Whether a bucket with this first word may have passed entries with this tag on to the next: an
/// entry is displaced if its home bucket is full, and each bucket that it passes notes the eighth
/// of the tags that the entry's is in. `tag` is in the place that it has in a slot entry; its upper
/// three bits name the eighth.
#[inline(always)]
fn passed_on(head: u64, tag: u64) -> bool {
    head >> (8 + (tag >> 11 & 7)) & 1 != 0
}

/// The fast search of one bucket, for a key of one to `LONGEST_SHORT` bytes whose length is not
/// stored. `tag` is in the place that it has in a slot entry, with [`DISPLACED`] behind the home
/// bucket. `WIDE`: the bucket's unit is more than a byte.
#[inline(always)]
fn search_bucket<const WIDE: bool>(
    bucket: Bucket<'_>,
    unit: u32,
    tag: u64,
    key: &[u8],
) -> PackedHit {
    let unit = if WIDE { unit } else { 0 };
    // The tag in each of the four slot entries of a word: one comparison tells all that match.
    let tags = tag * EACH;
    // The key's first eight bytes, and how far to shift a difference so that only its own count.
    let (first, unused) = (words::first(key), 8usize.saturating_sub(key.len()) * 8);
    let head = bucket.word(0);
    let n = entries(head);
    // The current word of four slot entries, the number of the first of them, and the slot entry in
    // front of that.
    let (mut slots, mut word, mut front) = (0, head, 0);
    // (1) `hits` has a bit set in each slot entry whose tag matches. Slot entry 0 is the bucket's
    // head, and no entry.
    let mut hits = matches(head, tags) & !0xFFFF;
    loop {
        while hits != 0 {
            // The first match that is left: its bit offset in the word, and its number.
            let shift = hits.trailing_zeros() as usize & 0x30;
            let i = slots + shift / 16;
            if i > n {
                // Behind the last slot entry lie free bytes or objects.
                break;
            }
            let slot = (word >> shift) as usize;
            if slot & usize::from(OUTSIDE) != 0 {
                // Its key lies behind a handle, which must not be followed before a check.
                return PackedHit::UNDECIDED;
            }
            let (mut from, mut spare) = (place(slot, unit), 0);
            if WIDE {
                // An object begins with how many bytes behind it are not its own.
                (from, spare) = (from + 1, bucket.load(from) as usize & 0xFF);
            }
            // (2) Keys are prefix-free, so an object that begins with the key is the key's. Most
            // keys differ in the first eight bytes.
            let differ = (bucket.load(from) ^ first) << unused;
            if differ == 0 && (key.len() <= 8 || goes_on_so(bucket, from, key)) {
                // It ends where the object before it begins.
                let before = place(((word << 16 | front) >> shift) as usize, unit);
                let end = if i == 1 { bucket.len() } else { before };
                let from = from + key.len();
                // What is torn may end before it begins.
                return PackedHit::new(i, from, end.saturating_sub(spare).max(from), false);
            }
            // The tag matched and the key didn't: the next match.
            hits &= hits - 1;
        }
        // The next word of slot entries, if there is one.
        slots += ENTRIES_PER_WORD;
        if slots > n {
            break;
        }
        front = word >> 48;
        word = bucket.word(slots / ENTRIES_PER_WORD);
        hits = matches(word, tags);
    }
    // (3)
    if passed_on(head, tag) {
        PackedHit::PASSED
    } else {
        PackedHit::ABSENT
    }
}

/// As `search_bucket`, for large buckets.
#[inline(never)]
fn search_wide_bucket(bucket: Bucket<'_>, unit: u32, tag: u64, key: &[u8]) -> PackedHit {
    search_bucket::<true>(bucket, unit, tag, key)
}

/// Whether a key of more than eight bytes, the first eight of which lie at `at`, lies there: the
/// last eight are looked at first, then those between.
#[inline(always)]
fn goes_on_so(bucket: Bucket<'_>, at: usize, key: &[u8]) -> bool {
    if bucket.load(at + key.len() - 8) != words::last(key) {
        return false;
    }
    let mut done = 8;
    while done + 8 < key.len() {
        if bucket.load(at + done) != words::first(&key[done..]) {
            return false;
        }
        done += 8;
    }
    true
}

impl<'g> HashLeaf<'g> {
    /// The fast search for a short key. None if it is undecided.
    #[inline(always)]
    pub(crate) fn search(self, home: &Home<'g>, key: &[u8]) -> Option<Option<Hit<'g>>> {
        let (mut bucket, tag) = (home.bucket, u64::from(home.tag) << 8);
        // (1) to (3)
        let mut found = match self.class() {
            ..=UNIT_CLASS => search_bucket::<false>(bucket, 0, tag, key),
            class => search_wide_bucket(bucket, unit(class), tag, key),
        };
        if found == PackedHit::PASSED {
            // (4)
            found = self.search_displaced(bucket, tag | u64::from(DISPLACED), key);
            if found.is_entry() {
                bucket = self.bucket(found.number());
            }
        }
        if found.is_entry() {
            return Some(Some(found.hit(bucket)));
        }
        (found == PackedHit::ABSENT).then_some(None)
    }

    /// Step 4: goes on behind a home bucket. All that it takes and gives are registers.
    #[inline(never)]
    fn search_displaced(self, home: Bucket<'g>, tag: u64, key: &[u8]) -> PackedHit {
        // The walk ends where it began: buckets are taken modulo their number.
        let (shape, home) = (self.shape(), self.number(home));
        let mut at = shape.next(home);
        while at != home {
            let found = match unit(self.class()) {
                0 => search_bucket::<false>(self.bucket(at), 0, tag, key),
                unit => search_wide_bucket(self.bucket(at), unit, tag, key),
            };
            // The bucket's number travels with the hit: the caller has no bucket for it.
            if found.is_entry() {
                return found.in_bucket(at);
            }
            // No bucket behind this one can have the entry; or the search is undecided.
            if found != PackedHit::PASSED {
                return found;
            }
            at = shape.next(at);
        }
        PackedHit::ABSENT
    }
}

/// A key to be found by the general search, taken apart: its first eight bytes and its last eight,
/// which may overlap.
#[derive(Clone, Copy)]
struct KeyWords<'a> {
    key: &'a [u8],
    first: u64,
    last: u64,
    /// How far to shift `first` to see its bytes alone.
    unused: u32,
    length_prefixed: bool,
}

impl<'a> KeyWords<'a> {
    #[inline(always)]
    fn new(key: &'a [u8], length_prefixed: bool) -> Self {
        let n = key.len();
        if n > 8 {
            return KeyWords {
                key,
                first: words::first(key),
                last: words::last(key),
                unused: 0,
                length_prefixed,
            };
        }
        KeyWords {
            key,
            first: words::little(key),
            last: 0,
            // For no byte at all: 64, which shifts by none; such a key is compared to nothing.
            unused: 64 - 8 * n as u32,
            length_prefixed,
        }
    }

    /// Whether the bucket has the key at `at`.
    #[inline(always)]
    fn is_at(&self, bucket: Bucket<'_>, at: usize) -> bool {
        let n = self.key.len();
        let differ = bucket.load(at) ^ self.first;
        if differ << (self.unused & 63) != 0 {
            return n == 0;
        }
        n <= 8 || bucket.load(at + n - 8) == self.last && (n <= 16 || self.rest_is_at(bucket, at))
    }

    /// Whether the bytes between the first eight and the last are there, too.
    #[inline(never)]
    fn rest_is_at(&self, bucket: Bucket<'_>, at: usize) -> bool {
        let middle = self.key[8..self.key.len() - 8].chunks(8);
        let mut at = at;
        { middle }.all(|chunk| {
            at += 8;
            let differ = bucket.load(at) ^ words::little(chunk);
            differ << (64 - 8 * chunk.len()) == 0
        })
    }
}

impl<'g> HashView<'g> {
    /// Finds the entry under a key with this hash, which has its home there: by the fast search if
    /// it is for such keys and not undecided.
    #[inline(always)]
    pub(crate) fn find(
        self,
        (hash, home): (u64, &Home<'g>),
        key: &[u8],
        form: KeyForm,
    ) -> Result<Option<Hit<'g>>, Torn> {
        if form.short {
            if let Some(known) = self.leaf.search(home, key) {
                return Ok(known);
            }
        }
        self.find_general(hash, key, form.length_prefixed)
    }

    /// Finds the entry under any key, by the general search.
    #[inline]
    pub(crate) fn find_general(
        self,
        hash: u64,
        key: &[u8],
        length_prefixed: bool,
    ) -> Result<Option<Hit<'g>>, Torn> {
        let found = self.search_general(hash, key, length_prefixed);
        if found.is_entry() {
            return Ok(Some(found.hit(self.leaf.bucket(found.number()))));
        }
        if found == PackedHit::TORN {
            Err(Torn)
        } else {
            Ok(None)
        }
    }

    /// Steps 1 to 4 for any key.
    #[inline(never)]
    fn search_general(self, hash: u64, key: &[u8], length_prefixed: bool) -> PackedHit {
        let shape = self.leaf.shape();
        let (home, tag) = shape.place(hash);
        let (mut at, mut tag) = (home, u64::from(tag) << 8);
        let wanted = KeyWords::new(key, length_prefixed);
        loop {
            let found = self.search_bucket_general(self.leaf.bucket(at), tag, &wanted);
            match found.unwrap_or(PackedHit::TORN) {
                PackedHit::PASSED => {}
                hit if hit.is_entry() => return hit.in_bucket(at),
                end => return end,
            }
            // (4) From here on it is a displaced entry.
            tag |= u64::from(DISPLACED);
            at = shape.next(at);
            if at == home {
                return PackedHit::ABSENT;
            }
        }
    }

    /// Steps 1 to 3 for any key.
    #[inline(never)]
    fn search_bucket_general(
        &self,
        bucket: Bucket<'g>,
        tag: u64,
        wanted: &KeyWords<'_>,
    ) -> Result<PackedHit, Torn> {
        // The same walk over slot entries as in `search_bucket`.
        let tags = tag * EACH;
        let head = bucket.word(0);
        let n = entries(head);
        let (mut first, mut word) = (0, head);
        // (1) Slot entry 0 is the bucket's head: no entry.
        let mut hits = matches(head, tags) & !0xFFFF;
        loop {
            while hits != 0 {
                let shift = hits.trailing_zeros() as usize & 0x30;
                let i = first + shift / 16;
                // Behind the last slot entry lie free bytes or objects.
                if i > n {
                    break;
                }
                // (2)
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
        // (3)
        Ok(if passed_on(head, tag) {
            PackedHit::PASSED
        } else {
            PackedHit::ABSENT
        })
    }

    /// Step 2 for any key: the entry of slot entry `i`, if it is under the key.
    fn check_entry(
        &self,
        bucket: Bucket<'g>,
        i: usize,
        slot: usize,
        wanted: &KeyWords<'_>,
    ) -> Result<Option<PackedHit>, Torn> {
        let unit = unit(self.leaf.class());
        // Where the slot entry says that the object begins.
        let mut from = place(slot, unit);
        if slot & usize::from(OUTSIDE) != 0 {
            let same = self.is_outside(bucket, from, wanted.key)?;
            return Ok(same.then_some(PackedHit::new(i, from, from, true)));
        }
        // The object ends where the one before it begins.
        let mut end = match i {
            1 => bucket.len(),
            _ => place(slot_entry(bucket, i - 1), unit),
        };
        if unit > 0 {
            // It begins with how many bytes behind it are not its own.
            end = end.saturating_sub(bucket.load(from) as usize & 0xFF);
            from += 1;
        }
        // A length that differs rules the entry out without a look at the key.
        if wanted.length_prefixed {
            let (len, size) = decode_key_len(bucket.load(from));
            if len != wanted.key.len() {
                return Ok(None);
            }
            from += size;
        }
        let value = from + wanted.key.len();
        // Keys are prefix-free, so an object that begins with the key is the key's.
        if value > end || !wanted.is_at(bucket, from) {
            return Ok(None);
        }
        Ok(Some(PackedHit::new(i, value, end, false)))
    }

    /// Whether the handle in the bucket is of an object under the key.
    #[cold]
    fn is_outside(&self, bucket: Bucket<'g>, at: usize, key: &[u8]) -> Result<bool, Torn> {
        // `object` checks the version first: a torn handle is not followed.
        let handle = Handle::from_bits(bucket.load(at));
        Ok(self.object(handle)?.position() == key)
    }
}
