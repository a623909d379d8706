//! A standard hash table, hashbrown, under one lock. It takes the place of `std::unordered_set` in
//! the experiment of 2013.
//!
//! ```text
//!   pages    [ hashbrown ] [ hashbrown ] [ hashbrown ] ...     up to 256 entries each on average
//!             000..         100..         010..                a page has a range of hashes
//!             (`address`)
//! ```
//!
//! A hash table has no order. But a scan that resumes after other operations needs one. So the
//! table is divided into pages by the top bits of the hash. A scan orders one page at a time: it
//! makes a heap of the entries from the cut on, in O(256), and takes them from it in order.
//!
//! Invariants:
//! * **CP1** A page has the entries with the hashes of its address.
//! * **CP2** There are at most 256 entries per page on average. If there are several pages, there
//!   are at least half as many.
//!
//! Steps of a change:
//! 1. Find the page and the entry.
//! 2. Let the caller decide.
//! 3. Change the page.
//! 4. If CP2 requires it, split a page, or join the last one with the one that it was split from.
//!
//! Cost: each operation has an additional access, to the array of pages. A step of a scan that
//! wants one entry takes some microseconds. In return, no insert pays for a rehash of the whole
//! table.
//!
//! Source: the study of 2013. hashbrown follows Google's SwissTable.
//!
//! When not to use it: for many writers, since there is one lock; for tables that are traversed
//! more often than looked up.

use crate::address::Address;
use crate::position::{hash_of, spilled, Entry};
use crate::sequential::{Act, Actor, Sequential, Visitor};
use crate::{Cut, Position};
use hashbrown::HashTable;
use larder_index::Stats;
use std::collections::BinaryHeap;

/// The maximum of the average number of entries per page.
const PAGE: usize = 256;

/// A hash table in pages. It maps positions, which begin with a hash, to words.
#[derive(Debug)]
pub struct Chained<W> {
    pages: Vec<HashTable<Entry<W>>>,
    address: Address,
    len: usize,
    /// The memory of the pages in bytes.
    held: usize,
    /// The bytes on the heap of positions that are too long for their entries.
    spilled: usize,
}

/// The hash for hashbrown. The entries of a page agree in the top bits of their hashes, so mix all
/// bits.
fn mixed(position: &[u8]) -> u64 {
    hash_of(position)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        .rotate_left(32)
}

impl<W> Default for Chained<W> {
    fn default() -> Self {
        Self::new()
    }
}

impl<W> Chained<W> {
    /// An empty table.
    pub fn new() -> Self {
        Chained {
            pages: vec![HashTable::new()],
            address: Address::default(),
            len: 0,
            held: 0,
            spilled: 0,
        }
    }

    /// The number of the page of a position.
    fn page(&self, position: &[u8]) -> usize {
        self.address.bucket(hash_of(position))
    }

    /// Calls `f` with a page, and then updates the count of memory.
    fn with_page<R>(&mut self, page: usize, f: impl FnOnce(&mut HashTable<Entry<W>>) -> R) -> R {
        let page = &mut self.pages[page];
        self.held -= page.allocation_size();
        let result = f(page);
        // Release memory if the page is sparse, but keep room for as many entries again.
        if page.len() * 4 < page.capacity() {
            page.shrink_to(page.len() * 2, |e| mixed(&e.position));
        }
        self.held += page.allocation_size();
        result
    }

    fn insert_new(&mut self, page: usize, entry: Entry<W>) {
        // (3)
        self.len += 1;
        self.spilled += spilled(&entry.position);
        // hashbrown asks for the hashes of the other entries when it has to grow.
        self.with_page(page, |page| {
            page.insert_unique(mixed(&entry.position), entry, |e| mixed(&e.position));
        });
        // (4)
        if self.len > self.address.buckets() * PAGE {
            self.grow();
        }
    }

    /// Steps 3 and 4, after an entry was removed from its page.
    fn removed(&mut self, entry: &Entry<W>) {
        self.len -= 1;
        self.spilled -= spilled(&entry.position);
        // CP2, as in step 4.
        if self.len * 2 < self.address.buckets() * PAGE {
            self.shrink();
        }
    }

    /// Splits the page whose turn it is.
    fn grow(&mut self) {
        if let Some((page, bit)) = self.address.grow() {
            // Entries with this bit go to the new page.
            let goes = |e: &mut Entry<W>| hash_of(&e.position) & bit != 0;
            let moved: Vec<_> = self.with_page(page, |page| page.extract_if(goes).collect());
            self.pages.push(HashTable::new());
            self.take_in(self.pages.len() - 1, moved);
        }
    }

    /// Joins the last page with the one that it was split from.
    fn shrink(&mut self) {
        if let Some(page) = self.address.shrink() {
            let last = self.pages.pop().unwrap_or_default();
            self.held -= last.allocation_size();
            self.take_in(page, last);
        }
    }

    fn take_in(&mut self, page: usize, entries: impl IntoIterator<Item = Entry<W>>) {
        self.with_page(page, |page| {
            for entry in entries {
                page.insert_unique(mixed(&entry.position), entry, |e| mixed(&e.position));
            }
        });
    }

    /// Visits the entries of a page that the cut admits, in order. Returns whether to continue.
    fn walk_page(&self, page: usize, cut: Cut<'_>, f: &mut Visitor<'_, W>) -> bool {
        let admitted = self.pages[page].iter().filter(|e| cut.admits(&e.position));
        let forward = cut.is_forward();
        // A heap is made in one pass. A walk that ends early needn't sort the rest.
        let mut waiting: BinaryHeap<_> = admitted.map(|entry| Next { forward, entry }).collect();
        while let Some(Next { entry, .. }) = waiting.pop() {
            if !f(&entry.position, &entry.word) {
                return false;
            }
        }
        true
    }
}

/// An entry of a page that a scan will visit. The greatest one is the next.
struct Next<'e, W> {
    forward: bool,
    entry: &'e Entry<W>,
}

impl<W> Ord for Next<'_, W> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let order = self.entry.position.cmp(&other.entry.position);
        if self.forward {
            order.reverse()
        } else {
            order
        }
    }
}

impl<W> PartialOrd for Next<'_, W> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<W> PartialEq for Next<'_, W> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<W> Eq for Next<'_, W> {}

impl<W: Send + Sync> Sequential<W> for Chained<W> {
    fn get(&self, position: &[u8]) -> Option<&W> {
        let found =
            self.pages[self.page(position)].find(mixed(position), |e| e.position[..] == *position);
        found.map(|entry| &entry.word)
    }

    fn change(&mut self, position: &[u8], f: &mut Actor<'_, W>) {
        // (1)
        let page = self.page(position);
        let found = self.pages[page].find_entry(mixed(position), |e| e.position[..] == *position);
        // (2), (3)
        match found {
            Err(_) => {
                // The position is copied only now, since most changes find an entry or keep
                // nothing.
                if let Act::Put(word) = f(None) {
                    let position = Position::from_slice(position);
                    self.insert_new(page, Entry { position, word });
                }
            }
            Ok(mut entry) => match f(Some(&mut entry.get_mut().word)) {
                Act::Keep => {}
                Act::Put(word) => entry.get_mut().word = word,
                Act::Remove => {
                    let (entry, _) = entry.remove();
                    // An empty visit of the page, which lets `with_page` account for memory that
                    // was released.
                    self.with_page(page, |_| ());
                    self.removed(&entry);
                }
            },
        }
    }

    fn walk(&self, cut: Cut<'_>, f: &mut Visitor<'_, W>) -> bool {
        // Pages are in the order of hashes, so the walk begins at the page of the cut.
        let from = cut.bytes().map(hash_of);
        let each = |bucket| self.walk_page(bucket, cut, f);
        self.address.walk(cut.is_forward(), from, each)
    }

    fn pop(&mut self) -> Option<W> {
        // From the end, taking away pages that are empty.
        loop {
            let last = self.pages.len() - 1;
            let taken = self.with_page(last, |page| page.extract_if(|_| true).next());
            if let Some(entry) = taken {
                self.removed(&entry);
                return Some(entry.word);
            }
            if last == 0 {
                return None;
            }
            self.shrink();
        }
    }

    fn len(&self) -> usize {
        self.len
    }

    fn stats(&self, stats: &mut Stats) {
        stats.more.push(("pages", self.pages.len() as u64));
    }

    fn memory(&self) -> usize {
        self.held + self.spilled + self.pages.capacity() * size_of::<HashTable<Entry<W>>>()
    }
}

#[cfg(all(test, not(larder_model)))]
mod tests {
    use super::*;

    fn position(n: u64) -> Vec<u8> {
        let hash = n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
        let long = vec![3; (n % 40) as usize];
        [&hash[..6], &n.to_be_bytes(), &long].concat()
    }

    #[test]
    fn pages_come_and_go() {
        let mut table = Chained::new();
        let empty = table.memory();
        for n in 0..5000u64 {
            table.insert(&position(n), n);
        }
        assert_eq!(table.pages.len(), 5000usize.div_ceil(PAGE));
        for n in 0..5000 {
            assert_eq!(table.get(&position(n)), Some(&n));
            assert!(table.remove(&position(n)));
            let held: usize = table.pages.iter().map(HashTable::allocation_size).sum();
            assert_eq!(table.held, held);
        }
        assert_eq!((table.len, table.spilled, table.pages.len()), (0, 0, 1));
        assert!(table.memory() < empty + 2000, "{}", table.memory());
    }
}
