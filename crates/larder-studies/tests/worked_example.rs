//! A structure of one's own, from beginning to end: entries in a sorted vector.

use larder_index::{pin, Change, Container, Key, Stats, Unique};
use larder_studies::{
    Act, Actor, Cut, OneLock, Order, Position, Sequential, UniqueAdapter, Visitor,
};
use larder_testing::OracleUnique;

/// Entries by ascending position. Found in O(log n); a change moves what lies after it, O(n).
struct SortedVec<W>(Vec<(Position, W)>);

impl<W> SortedVec<W> {
    fn find(&self, position: &[u8]) -> Result<usize, usize> {
        self.0.binary_search_by(|(p, _)| p[..].cmp(position))
    }
}

impl<W: Send + Sync> Sequential<W> for SortedVec<W> {
    fn get(&self, position: &[u8]) -> Option<&W> {
        self.find(position).ok().map(|i| &self.0[i].1)
    }

    fn change(&mut self, position: &[u8], f: &mut Actor<'_, W>) {
        match self.find(position) {
            Ok(i) => match f(Some(&mut self.0[i].1)) {
                Act::Keep => {}
                Act::Put(word) => self.0[i].1 = word,
                Act::Remove => drop(self.0.remove(i)),
            },
            Err(i) => {
                if let Act::Put(word) = f(None) {
                    self.0.insert(i, (Position::from_slice(position), word));
                }
            }
        }
    }

    fn walk(&self, cut: Cut<'_>, f: &mut Visitor<'_, W>) -> bool {
        let at = self.0.partition_point(|(p, _)| cut.has_left(p));
        let (left, right) = self.0.split_at(at);
        match cut.is_forward() {
            true => right.iter().all(|(p, word)| f(p, word)),
            false => left.iter().rev().all(|(p, word)| f(p, word)),
        }
    }

    fn pop(&mut self) -> Option<W> {
        self.0.pop().map(|(_, word)| word)
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn memory(&self) -> usize {
        // Positions of up to 16 bytes stand in their entries.
        let spilled = self.0.iter().filter(|(p, _)| p.spilled());
        self.0.capacity() * size_of::<(Position, W)>()
            + spilled.map(|(p, _)| p.capacity()).sum::<usize>()
    }

    fn stats(&self, stats: &mut Stats) {
        stats.more.push(("room", self.0.capacity() as u64));
    }
}

/// It is an index once a scheme shares it and an adapter keeps the objects.
#[test]
fn does_what_the_oracle_does() {
    let index = UniqueAdapter::new(OneLock::new(SortedVec(Vec::new()), 1), Order::Key);
    let oracle = OracleUnique::new(true);
    for i in 0..2_000u32 {
        let bytes = (i.wrapping_mul(0x9E37_79B9) >> 22).to_be_bytes();
        let key = Key {
            bytes: &bytes,
            hash: 0,
        };
        let both: [&dyn Unique; 2] = [&index, &oracle];
        let did = both.map(|index| {
            index.update(&pin(), key, &mut |old, scratch| {
                scratch.extend_from_slice(&i.to_be_bytes());
                match old {
                    Some(old) if old[3] % 3 == 0 => Change::Remove,
                    _ => Change::Put,
                }
            })
        });
        assert_eq!((did[0], index.len()), (did[1], oracle.len()));
    }
    assert!(index.stats().more[0].1 >= index.len() as u64);
}

/// The page that explains how to add a structure shows this file.
#[test]
fn the_page_shows_this_file() {
    let page = include_str!("../../../docs/structures.md");
    assert!(page.contains(include_str!("worked_example.rs")));
}
