//! Claims of values in unique indexes, made before a row is written.
//!
//! A write claims the values of its new row while it holds the lock of the row's key. If another
//! row has one of them, the write is refused, and gives its claims back.
//!
//! A claim may belong to a row that is never written. The write may be refused because of another
//! value, or because the table's state word has changed; or the claim may be that of a list or a
//! commit that fails. A write that meets such a claim must not be refused. So two numbers are
//! counted: the pending claims that may still be given back, and those that were given back. A
//! write is refused only if no claim was pending when it found the other row's, and if none was
//! given back since it began. Otherwise it starts again (X5). A claim is counted when it is made. A
//! write that only meets the claims of others isn't, so that refusals don't hold each other up.
//!
//! The values are divided by their hash into `STRIPES` stripes with counts of their own. So a write
//! hardly ever starts again because of claims of other values, however many writers there are.
//!
//! # Invariants (docs/design.md §5.10.5)
//!
//! * X6: All indexes of a table share one `Claims`, including the sets of indexes that succeed each
//!   other.
//! * X7: A write revalidates once more after it has made its claims. A batch that removes a value
//!   from an index and inserts it again holds the latch meanwhile.
//! * X8: A commit draws its number, and a write reads the clock, after their claims. A write that
//!   gives up a value reads the clock before it removes the entry.

use super::entries::Claim;
use super::layer::{with_entry_buffers, EntryBuffers};
use super::refusal::{forget_holder_if, take_holder, Holder};
use super::values::has;
use super::{Entries, IndexEntry, Indexes};
use larder_index::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use larder_index::sync::{planted, Fault};
use larder_index::{Guard, Values};
use larder_term::Atom;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The number of stripes, as many as a word has bits.
const STRIPES: usize = u64::BITS as usize;

/// The counts of the claims of a table.
pub(super) struct Claims([Stripe; STRIPES]);

/// The counts of the claims of a stripe of values.
#[derive(Default)]
struct Stripe {
    /// The number of writes with pending claims, which may be given back.
    pending: AtomicUsize,
    /// The number of writes that have given claims back.
    undone: AtomicU64,
}

/// The reason why a row must not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Another row has its value in the index of this name.
    Taken(Atom),
    /// Another write has claimed its value, and may give it back.
    Undecided,
}

/// Claimed values of rows that are about to be written.
pub(crate) struct Claimed {
    indexes: Arc<Indexes>,
    made: Vec<ClaimedEntry>,
    counted: ClaimCounts,
    /// If the claim of a row was interrupted: the number of the first of its values in `made`. If
    /// the row is claimed again, these values are its own.
    begun: usize,
    /// Values that one of the rows gives up and another one gets, with the key of the latter.
    moved_values: Vec<ClaimedEntry>,
    are_kept: bool,
}

/// How the claims of a write are counted.
#[derive(Default)]
struct ClaimCounts {
    /// The stripes in which it is counted as pending, each once: a bit for each.
    stripes: u64,
    /// Whether it has given back a claim.
    has_undone: bool,
}

/// An entry that was claimed.
struct ClaimedEntry {
    /// The number of the index.
    index: usize,
    value: Vec<u8>,
    key: Vec<u8>,
}

impl ClaimedEntry {
    fn new(index: usize, entry: IndexEntry<'_>) -> Self {
        ClaimedEntry {
            index,
            value: entry.value.to_vec(),
            key: entry.key.to_vec(),
        }
    }

    /// What claimed entries are searched by.
    fn order(&self) -> (usize, &[u8], &[u8]) {
        (self.index, &self.value, &self.key)
    }

    fn entry(&self) -> IndexEntry<'_> {
        IndexEntry {
            value: &self.value,
            key: &self.key,
        }
    }
}

/// The rows of a key that a commit replaces.
pub(crate) struct ReplacedRows<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) old: Values,
    pub(crate) new: Values,
}

impl Default for Claims {
    fn default() -> Self {
        Claims([(); STRIPES].map(|()| Stripe::default()))
    }
}

impl Stripe {
    fn undone(&self) -> u64 {
        // Ordering: SeqCst, for all of this file. A write that meets a claim which is given back
        // later either sees that it is pending, or sees that one was given back.
        self.undone.load(Ordering::SeqCst)
    }

    /// Whether a claim of another row belongs to an existing row. `undone` is the count of claims
    /// that were given back, as read before that claim was found. `our_claims` is 1 if the caller
    /// itself is counted as pending in this stripe, and otherwise 0.
    fn is_decided(&self, undone: u64, our_claims: usize) -> bool {
        let others = self.pending.load(Ordering::SeqCst) - our_claims;
        others == 0 && self.undone() == undone || planted(Fault::UnsettledClaim)
    }
}

impl ClaimCounts {
    /// Whether the write is counted as pending in a stripe.
    fn has(&self, stripe: usize) -> bool {
        self.stripes >> stripe & 1 != 0
    }

    /// Counts the write as pending in a stripe, before the first claim there can be seen.
    fn begin(&mut self, claims: &Claims, stripe: usize) {
        if !self.has(stripe) {
            self.stripes |= 1 << stripe;
            claims.0[stripe].pending.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Ends the count, after the claims were kept or given back.
    fn end(&self, claims: &Claims) {
        let mut left = self.stripes;
        while left != 0 {
            let stripe = &claims.0[left.trailing_zeros() as usize];
            left &= left - 1;
            if self.has_undone {
                stripe.undone.fetch_add(1, Ordering::SeqCst);
            }
            stripe.pending.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl Indexes {
    /// Claims the values of a row that replaces another one, or that is added to those of a bag's
    /// key. Called under the entry's lock. If the row is refused, or if `revalidate` returns
    /// `false` after the claims, all claims are given back.
    pub(crate) fn claim(
        self: &Arc<Self>,
        guard: &Guard,
        key: &[u8],
        old: Option<&[u8]>,
        new: &[u8],
        revalidate: impl FnOnce() -> bool,
    ) -> Result<(), Refused> {
        if !self.has_unique() {
            return Ok(());
        }
        let mut claimed = Claimed::begin(self);
        let made = claimed.claim(guard, key, old, new);
        claimed.keep_if(guard, made, revalidate)
    }

    fn claim_each(
        &self,
        guard: &Guard,
        key: &[u8],
        old: Option<&[u8]>,
        new: &[u8],
        (made, counted): (&mut Vec<ClaimedEntry>, &mut ClaimCounts),
        begun: usize,
    ) -> Result<(), Refused> {
        // An earlier attempt for the same row may have claimed some, perhaps very many. Those that
        // follow are of different values, or of different indexes.
        let earlier = begun..made.len();
        made[begun..].sort_unstable_by(|one, other| one.order().cmp(&other.order()));
        with_entry_buffers(|buffers| {
            let EntryBuffers {
                row,
                old: before,
                new: after,
                ..
            } = buffers;
            for (index, entries) in self.unique() {
                // The values of the old row and of the new one in this index.
                before.clear();
                if let Some(old) = old {
                    self.values_of(entries, key, old, row, before);
                }
                self.values_of(entries, key, new, row, after);
                // The key already has the values that the old row has.
                for value in after.iter().filter(|value| !has(before, value)) {
                    let entry = IndexEntry { value, key };
                    // Claim it, unless an earlier attempt has.
                    let own = (index, entry.value, entry.key);
                    let found = made[earlier.clone()].binary_search_by(|it| it.order().cmp(&own));
                    if found.is_err() {
                        self.claim_value(index, guard, entry, (made, counted))?;
                    }
                }
            }
            Ok(())
        })
    }

    /// Claims a value of the unique index with this number.
    fn claim_value(
        &self,
        index: usize,
        guard: &Guard,
        entry: IndexEntry<'_>,
        (made, counted): (&mut Vec<ClaimedEntry>, &mut ClaimCounts),
    ) -> Result<(), Refused> {
        let entries = &self.each[index];
        let number = self.stripe(entry.value);
        let stripe = &self.claims.0[number];
        // Read this before the entry. If a claim is given back in between, the numbers differ.
        let undone = stripe.undone();
        // A claim is counted under the lock of its entry's leaf. So a write that meets it finds it
        // counted, and doesn't take it for decided.
        let count = || counted.begin(&self.claims, number);
        let claim = entries.claim(guard, entry, self.keys.one_row, count);
        let our_claims = usize::from(counted.has(number));
        match claim {
            Claim::Made => made.push(ClaimedEntry::new(index, entry)),
            Claim::Own => {}
            Claim::Taken if !stripe.is_decided(undone, our_claims) => {
                return Err(Refused::Undecided);
            }
            // An index that was given up refuses nothing.
            Claim::Taken if entries.is_broken() => drop(take_holder()),
            // One that is being built may be given up by the caller (`give_up`), once it knows that
            // the other row hasn't expired.
            Claim::Taken => return Err(Refused::Taken(entries.definition.name)),
        }
        Ok(())
    }

    /// Makes the entry of a value that `rows` rows of a key have, in a unique index that is being
    /// built. Called under the entry's lock.
    ///
    /// # Errors
    /// Those of `claim`. If several rows of the key have the value, the index is broken.
    pub(super) fn claim_for_build(
        &self,
        entries: &Entries,
        guard: &Guard,
        entry: IndexEntry<'_>,
        rows: u64,
    ) -> Result<(), Refused> {
        let stripe = &self.claims.0[self.stripe(entry.value)];
        let undone = stripe.undone();
        // The rows exist, so this claim is never given back.
        let claim = entries.claim(guard, entry, true, || ());
        if claim == Claim::Taken && !stripe.is_decided(undone, 0) {
            return Err(Refused::Undecided);
        }
        if rows > 1 {
            entries.mark_broken();
        }
        match claim {
            Claim::Taken => Err(Refused::Taken(entries.definition.name)),
            Claim::Made | Claim::Own => Ok(()),
        }
    }

    /// The stripe of a value.
    fn stripe(&self, value: &[u8]) -> usize {
        self.seed.hash(value) as usize % STRIPES
    }

    /// The values of all rows of a key, sorted.
    fn all_values(&self, entries: &Entries, key: &[u8], rows: &Values) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        // A bag's key may have several rows with values of their own.
        with_entry_buffers(|buffers| {
            for row in rows.iter() {
                let EntryBuffers {
                    row: row_buffers,
                    new,
                    ..
                } = &mut *buffers;
                self.values_of(entries, key, row, row_buffers, new);
                all.extend(new.iter().map(<[u8]>::to_vec));
            }
        });
        all.sort_unstable();
        all
    }

    /// The unique indexes, with their numbers.
    fn unique(&self) -> impl Iterator<Item = (usize, &Arc<Entries>)> {
        let each = self.each.iter().enumerate();
        each.filter(|(_, entries)| entries.definition.unique)
    }

    /// Removes claimed entries, the last one first.
    fn give_back(&self, guard: &Guard, made: &[ClaimedEntry]) {
        let mut position = Vec::new();
        for claimed in made.iter().rev() {
            self.each[claimed.index].remove(
                guard,
                claimed.entry(),
                self.keys.one_row,
                &mut position,
            );
        }
    }
}

impl Claimed {
    /// Begins to claim values for rows that are written together.
    pub(crate) fn begin(indexes: &Arc<Indexes>) -> Self {
        Claimed {
            indexes: Arc::clone(indexes),
            made: Vec::new(),
            counted: ClaimCounts::default(),
            begun: 0,
            moved_values: Vec::new(),
            are_kept: false,
        }
    }

    /// Claims the values of one more row. After an error the same row may be claimed again.
    pub(crate) fn claim(
        &mut self,
        guard: &Guard,
        key: &[u8],
        old: Option<&[u8]>,
        new: &[u8],
    ) -> Result<(), Refused> {
        let Claimed {
            indexes,
            made,
            counted,
            begun,
            ..
        } = self;
        indexes.claim_each(guard, key, old, new, (made, counted), *begun)?;
        self.begun = self.made.len();
        Ok(())
    }

    /// Claims the values of rows that are written together. A row may get a value that another one
    /// gives up. If two rows want one value, no holder is noted.
    pub(crate) fn claim_together(
        &mut self,
        guard: &Guard,
        rows: &[ReplacedRows<'_>],
    ) -> Result<(), Refused> {
        let claimed = self.claim_all(guard, rows);
        if claimed.is_err() {
            forget_holder_if(|holder| self.is_holder(holder));
        }
        claimed
    }

    fn claim_all(&mut self, guard: &Guard, rows: &[ReplacedRows<'_>]) -> Result<(), Refused> {
        let indexes = Arc::clone(&self.indexes);
        for (index, entries) in indexes.unique().filter(|(_, entries)| !entries.is_broken()) {
            let mut given_up = BTreeMap::<Vec<u8>, Option<&[u8]>>::new();
            // `given_up` has the values that rows lose, each with the row that gets it. `wanted`
            // has those that rows get.
            let mut wanted = Vec::<(Vec<u8>, &[u8])>::new();
            for ReplacedRows { key, old, new } in rows {
                let (before, after) = (
                    indexes.all_values(entries, key, old),
                    indexes.all_values(entries, key, new),
                );
                // Two rows of the same key of a bag.
                if after.windows(2).any(|pair| pair[0] == pair[1]) {
                    return Err(Refused::Taken(entries.definition.name));
                }
                // Both lists are sorted.
                let is_in = |all: &[Vec<u8>], value: &Vec<u8>| all.binary_search(value).is_ok();
                let (stay, new): (Vec<_>, Vec<_>) =
                    after.into_iter().partition(|value| is_in(&before, value));
                wanted.extend(new.into_iter().map(|value| (value, *key)));
                let removed = before.into_iter().filter(|value| !is_in(&stay, value));
                given_up.extend(removed.map(|value| (value, None)));
            }
            // A value that one row gives up may go to one other row. Two that want it exclude each
            // other.
            for (value, key) in &wanted {
                match given_up.get_mut(value) {
                    // These are made last, in `hand_over`, because they can't be given back.
                    Some(new_key @ None) => *new_key = Some(key),
                    Some(_) => return Err(Refused::Taken(entries.definition.name)),
                    None => {
                        let made = (&mut self.made, &mut self.counted);
                        indexes.claim_value(index, guard, IndexEntry { value, key }, made)?;
                    }
                }
            }
            for (value, new_key) in given_up {
                if let Some(key) = new_key {
                    let key = key.to_vec();
                    self.moved_values.push(ClaimedEntry { index, value, key });
                }
            }
        }
        Ok(())
    }

    /// Passes the values that rows give up to the rows that get them. Nothing may be given back
    /// after this: the rows are going to be written.
    pub(crate) fn hand_over(&mut self, guard: &Guard) {
        for moved in self.moved_values.drain(..) {
            self.indexes.each[moved.index].hand_over(guard, moved.entry());
        }
    }

    /// Whether the value that couldn't be claimed is one of those claimed here, for another row.
    pub(crate) fn is_holder(&self, holder: &Holder) -> bool {
        self.made.iter().any(|claimed| {
            let index = &self.indexes.each[claimed.index].definition.name;
            (index, &claimed.value, &claimed.key) == (&holder.index, &holder.value, &holder.key)
        })
    }

    /// Gives the last claim back. Returns `false` if there is none left.
    pub(crate) fn give_one_back(&mut self, guard: &Guard) -> bool {
        let last = self.made.pop();
        self.counted.has_undone |= last.is_some();
        self.indexes.give_back(guard, last.as_slice());
        last.is_some()
    }

    /// Keeps the claims if all were `made`, and `revalidate` returns `true`. The rows are then
    /// written. Otherwise all claims are given back.
    pub(crate) fn keep_if(
        mut self,
        guard: &Guard,
        made: Result<(), Refused>,
        revalidate: impl FnOnce() -> bool,
    ) -> Result<(), Refused> {
        let kept = match made {
            Ok(()) if self.made.is_empty() || revalidate() => {
                self.keep();
                return Ok(());
            }
            Ok(()) => Err(Refused::Undecided),
            Err(why) => Err(why),
        };
        // The caller holds a leaf's lock. `drop` would pin the epoch, which may run deferred calls.
        while self.give_one_back(guard) {}
        kept
    }

    /// Keeps the claims. The rows are written.
    pub(crate) fn keep(mut self) {
        self.are_kept = true;
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        if !self.are_kept && !self.made.is_empty() {
            self.counted.has_undone = true;
            self.indexes.give_back(&larder_index::pin(), &self.made);
        }
        self.counted.end(&self.indexes.claims);
    }
}

#[cfg(test)]
mod tests {
    use super::super::values::SearchValue;
    use super::*;
    use crate::api::{Index, Larder};
    use crate::error::Error;
    use larder_term::{term, Term};
    use std::time::Duration;

    /// A claim of many values that another write interrupts goes on where it was.
    #[test]
    fn an_interrupted_claim_of_many_values_keeps_what_it_has() {
        const VALUES: i64 = 20_000;
        let builder = Larder::new()
            .table("t")
            .index(Index::element("v", 2).each().unique());
        let t = builder.create().unwrap();
        let guard = larder_index::pin();
        let store = t.engine_table().store(&guard).unwrap();
        let indexes = Arc::clone(store.layers().indexes.as_ref().unwrap());
        let last = SearchValue::new(Term::int(VALUES).as_ref(), &mut Vec::new()).value;
        let mut other = Claimed::begin(&indexes);
        let made = (&mut other.made, &mut other.counted);
        let entry = IndexEntry {
            value: &last,
            key: b"x",
        };
        indexes.claim_value(0, &guard, entry, made).unwrap();
        // The row as it is stored in another table.
        let source = Larder::new().table("u").create().unwrap();
        let values = Term::list(
            (1..=VALUES as i32)
                .map(|n| Term::int(n.into()))
                .collect::<Vec<_>>(),
        );
        source.insert(&Term::tuple([Term::int(1), values])).unwrap();
        let (mut keys, mut rows) = (Vec::new(), Values::default());
        let objects = source.engine_table().store(&guard).unwrap();
        let mut batch = larder_index::Batch::default();
        let forward = larder_index::Direction::Forward;
        objects
            .index
            .scan(&guard, larder_index::Start::Edge, forward, &mut batch);
        let (key, row) = batch.entry(0);
        keys.extend_from_slice(key);
        rows.push(row);
        let row = rows.iter().next().unwrap();
        let mut claimed = Claimed::begin(&indexes);
        for _ in 0..3 {
            let refused = claimed.claim(&guard, &keys, None, row);
            assert_eq!(refused, Err(Refused::Undecided));
            assert_eq!(claimed.made.len() as i64, VALUES - 1);
        }
        drop(other);
        assert_eq!(claimed.claim(&guard, &keys, None, row), Ok(()));
        assert_eq!(claimed.made.len() as i64, VALUES);
    }

    /// The form of a number in an index.
    fn value(n: i64) -> Vec<u8> {
        let form = SearchValue::new(Term::int(n).as_ref(), &mut Vec::new());
        form.value.to_vec()
    }

    /// A row whose value 1 is taken is refused, although another write isn't over. That one has
    /// tried to claim the value that `choose` returns, with this result.
    fn refuse_beside(choose: impl Fn(&Indexes) -> Vec<u8>) -> Result<(), Refused> {
        let builder = Larder::new()
            .table("t")
            .index(Index::element("v", 2).unique());
        let t = builder.create().unwrap();
        t.insert(&term!({1, 1})).unwrap();
        let guard = larder_index::pin();
        let store = t.engine_table().store(&guard).unwrap();
        let indexes = Arc::clone(store.layers().indexes.as_ref().unwrap());
        let other = choose(&indexes);
        let mut open = Claimed::begin(&indexes);
        let made = (&mut open.made, &mut open.counted);
        let entry = IndexEntry {
            value: &other,
            key: b"x",
        };
        let claimed = indexes.claim_value(0, &guard, entry, made);
        let (answer, answers) = std::sync::mpsc::channel();
        let writer = t.clone();
        std::thread::spawn(move || answer.send(writer.insert(&term!({2, 1}))));
        let answer = answers.recv_timeout(Duration::from_secs(30));
        assert!(matches!(answer, Ok(Err(Error::NotUnique(_)))), "{answer:?}");
        claimed
    }

    /// Another write, which has claimed another value, doesn't hold up a refusal.
    #[test]
    fn a_refusal_waits_for_no_claim_of_another_value() {
        let other = |indexes: &Indexes| {
            let differs = |other: &Vec<u8>| indexes.stripe(other) != indexes.stripe(&value(1));
            (2..).map(value).find(differs).unwrap()
        };
        assert_eq!(refuse_beside(other), Ok(()));
    }

    /// Nor does one that has found the same value taken.
    #[test]
    fn a_refusal_waits_for_no_other_refusal() {
        let claimed = refuse_beside(|_| value(1));
        assert!(matches!(claimed, Err(Refused::Taken(_))));
    }
}
