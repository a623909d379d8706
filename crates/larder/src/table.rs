//! A table: its fixed properties, its state word, and how every operation begins.
//!
//! The state word ([`EpochCell`]) holds the pointer to the current store and two bits: `CLOSED` (a
//! batch holds the gate) and `DEAD`. One load tells an operation all it needs. A writer looks at
//! the word again under the leaf's lock; a store that was replaced, a gate that was closed and a
//! table that died meanwhile are all seen there, before anything is written.

use crate::engine::Inner;
use crate::error::Error;
use crate::fixation::Fixation;
use crate::gate::{Gate, Intent};
use crate::options::{Access, Options, TableKind};
use crate::owner::{OwnerId, Who};
use crate::raw::{EpochCell, Seen};
use crate::store::Store;
use larder_index::sync::{planted, Fault, Mutex};
use larder_index::{Guard, Key, Stats};
use larder_term::hash::Seed;
use larder_term::object::{self, KeyForm, ObjectBuf, ObjectEncoder, ObjectError};
use larder_term::{Atom, Encoder, Mode, Term, TermRef};
use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicU8, Ordering};
use std::sync::Weak;

/// The state bit of a closed gate.
pub(crate) const CLOSED: usize = 1;
/// The state bit of a dead table.
pub(crate) const DEAD: usize = 2;

/// A table's number: never used twice by one engine.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId(pub u64);

impl fmt::Debug for TableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "table#{}", self.0)
    }
}

/// What the table's administration guards: who gets it, and whether it is still listed.
pub(crate) struct Admin {
    pub(crate) heir: Option<(OwnerId, Term)>,
    pub(crate) gone: bool,
}

/// A table of tuples. Made by `Engine::create`; shared as an `Arc`. Once dropped, every operation
/// answers `NoTable`.
pub struct Table {
    pub(crate) id: TableId,
    /// What every operation asks of the options, beside what else it reads.
    keypos: usize,
    kind: TableKind,
    compressed: bool,
    pub(crate) options: Box<Options>,
    pub(crate) form: KeyForm,
    pub(crate) seed: Seed,
    pub(crate) cell: EpochCell<Store>,
    pub(crate) gate: Gate,
    pub(crate) fixation: Fixation,
    name: AtomicU32,
    owner: AtomicU64,
    access: AtomicU8,
    pub(crate) admin: Mutex<Admin>,
    pub(crate) beside: Mutex<Option<Beside>>,
    pub(crate) engine: Weak<Inner>,
}

/// What a host keeps beside a table.
pub type Beside = Box<dyn Any + Send + Sync>;

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} '{}' {:?}",
            self.id,
            self.name().text(),
            self.kind()
        )
    }
}

/// An operation's hold on a table's store, as it was when the operation began.
pub(crate) struct At<'g> {
    pub(crate) guard: &'g Guard,
    pub(crate) seen: Seen<'g, Store>,
    pub(crate) store: &'g Store,
    pub(crate) pass: Pass,
}

/// What let an operation begin.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pass(u64);

impl Pass {
    /// The gate was open.
    pub(crate) const OPEN: Pass = Pass(0);
    /// It belongs to the batch that holds the gate.
    pub(crate) const BATCH: Pass = Pass(u64::MAX);

    /// Its key is settled with the batch for which the gate was closed, the so-many-th time.
    pub(crate) fn settled(closings: u64) -> Pass {
        debug_assert!(closings > 0);
        Pass(closings)
    }
}

/// Makes the state word's next load come after the leaf's lock was taken, for the threads that
/// close a gate or fix a table and then read leaves.
#[inline]
pub(crate) fn after_lock() {
    // Ordering: the lock is taken by a locked read-modify-write, which on x86-64 is a full barrier
    // already; elsewhere a fence makes it one. Pairs with the `SeqCst` change of the state word (or
    // the fixation's flag) that comes before the other side's reading of leaves.
    #[cfg(target_arch = "x86_64")]
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
    #[cfg(not(target_arch = "x86_64"))]
    std::sync::atomic::fence(Ordering::SeqCst);
}

impl Table {
    /// A table that is nowhere listed yet.
    pub(crate) fn make(
        id: TableId,
        mut options: Options,
        owner: OwnerId,
        engine: Weak<Inner>,
    ) -> Self {
        // What an heir is told lies in one place, and goes with the heir.
        let heir = options.heir.take();
        let form = if options.kind.is_ordered() {
            KeyForm::Ordered
        } else {
            KeyForm::Hash {
                legacy_zero: options.legacy_zero,
            }
        };
        // A model checker's schedules can be run again only if hashes are the same.
        let seed = if cfg!(larder_model) {
            Seed::from_number(id.0)
        } else {
            Seed::random()
        };
        Table {
            id,
            keypos: options.keypos,
            kind: options.kind,
            compressed: options.compressed,
            form,
            cell: EpochCell::new(Store::new(&options, &seed)),
            seed,
            gate: Gate::default(),
            fixation: Fixation::default(),
            name: AtomicU32::new(options.name.id()),
            owner: AtomicU64::new(owner.raw()),
            access: AtomicU8::new(options.access as u8),
            admin: Mutex::new(Admin { heir, gone: false }),
            beside: Mutex::default(),
            options: Box::new(options),
            engine,
        }
    }

    /// The table's number.
    pub fn id(&self) -> TableId {
        self.id
    }

    /// The table's name.
    pub fn name(&self) -> Atom {
        // Ordering: Relaxed; a number, and atoms live for ever.
        Atom::from_id(self.name.load(Ordering::Relaxed)).unwrap_or(self.options.name)
    }

    pub(crate) fn set_name(&self, name: Atom) {
        // Ordering: Relaxed, as in `name`; changed under `admin`.
        self.name.store(name.id(), Ordering::Relaxed);
    }

    /// Whether the table is found under its name.
    #[inline]
    pub fn is_named(&self) -> bool {
        self.options.named
    }

    /// The type.
    #[inline]
    pub fn kind(&self) -> TableKind {
        self.kind
    }

    /// Who may read and write.
    #[inline]
    pub fn access(&self) -> Access {
        // Ordering: Relaxed; a right that changes while an operation begins is the old or the new
        // one.
        match self.access.load(Ordering::Relaxed) {
            0 => Access::Public,
            1 => Access::Protected,
            _ => Access::Private,
        }
    }

    pub(crate) fn store_access(&self, access: Access) {
        // Ordering: Relaxed, as in `access`; changed under `admin`.
        self.access.store(access as u8, Ordering::Relaxed);
    }

    /// The position of the key in each object.
    #[inline]
    pub fn keypos(&self) -> usize {
        self.keypos
    }

    /// Whether objects are kept compressed.
    #[inline]
    pub fn compressed(&self) -> bool {
        self.compressed
    }

    /// What the host keeps beside the table, in the place that `f` is shown: nothing at first. It
    /// is dropped when the table dies. Under a lock: `f` is short. What is put there after the
    /// table has died stays, so `f` looks whether it lives.
    pub fn with_beside<R>(&self, f: impl FnOnce(&mut Option<Beside>) -> R) -> R {
        f(&mut self.beside.lock())
    }

    /// The options as the table was made with them; name, owner, heir and access may have changed
    /// since.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The owner at this moment.
    #[inline]
    pub fn owner(&self) -> OwnerId {
        // Ordering: Acquire, pairs with `set_owner`: who sees the new owner sees what the transfer
        // did before.
        OwnerId::from_raw(self.owner.load(Ordering::Acquire))
    }

    pub(crate) fn set_owner(&self, owner: OwnerId) {
        // Ordering: Release, pairs with `owner`; changed under `admin`.
        self.owner.store(owner.raw(), Ordering::Release);
    }

    /// Whether the table has not been dropped.
    pub fn is_alive(&self) -> bool {
        self.cell.tag() & DEAD == 0
    }

    /// The form of this table's keys, for those who encode objects themselves.
    #[inline]
    pub fn key_form(&self) -> KeyForm {
        self.form
    }

    /// Appends the index key of a term to `out`. Linear in the term.
    pub fn encode_key(&self, key: TermRef<'_>, out: &mut Vec<u8>) {
        let KeyForm::Hash { legacy_zero } = self.form else {
            larder_term::order_key::encode(key, out);
            return;
        };
        let start = out.len();
        let mut enc = Encoder::new(out, Mode::Inline);
        enc.term(key);
        if legacy_zero && enc.has_negative_zero() {
            out.truncate(start);
            let mut object = ObjectBuf::new();
            let mut enc = ObjectEncoder::new(&mut object, 1, 1, self.form, false);
            enc.key(|e| e.term(key));
            enc.finish();
            out.extend_from_slice(object.key());
        }
    }

    /// Encodes a tuple as an object of this table.
    ///
    /// # Errors
    /// `NotTuple`, and `Keypos` if the tuple is too short to have a key.
    pub fn encode_object(&self, tuple: TermRef<'_>, out: &mut ObjectBuf) -> Result<(), Error> {
        object::encode(tuple, self.keypos(), self.form, self.compressed(), out).map_err(|e| match e
        {
            ObjectError::NotTuple => Error::NotTuple,
            _ => Error::Keypos,
        })
    }

    /// Whether `who` may read the table.
    ///
    /// # Errors
    /// `NoTable`, `Access`.
    #[inline]
    pub fn check_read(&self, who: OwnerId) -> Result<(), Error> {
        if self.access() == Access::Private && self.owner() != who {
            return self.refuse();
        }
        self.check_alive()
    }

    /// Whether `who` may write the table.
    ///
    /// # Errors
    /// `NoTable`, `Access`.
    #[inline]
    pub fn check_write(&self, who: OwnerId) -> Result<(), Error> {
        if self.access() != Access::Public && self.owner() != who {
            return self.refuse();
        }
        self.check_alive()
    }

    /// A dead table's error comes before the lack of a right.
    #[cold]
    fn refuse(&self) -> Result<(), Error> {
        self.check_alive()?;
        Err(Error::Access)
    }

    fn check_alive(&self) -> Result<(), Error> {
        if self.is_alive() {
            Ok(())
        } else {
            Err(Error::NoTable)
        }
    }

    /// The right to read as far as it does not depend on the table's life, which `begin` looks at.
    #[inline(always)]
    pub(crate) fn may_read(&self, who: impl Who) -> Result<(), Error> {
        if self.access() == Access::Private && self.owner() != who.owner() {
            return self.refuse();
        }
        Ok(())
    }

    /// The right to write, as far as it does not depend on the table's life, which each operation
    /// looks at.
    ///
    /// # Errors
    /// `NoTable`, `Access`.
    #[inline(always)]
    pub fn may_write(&self, who: impl Who) -> Result<(), Error> {
        if self.access() != Access::Public && self.owner() != who.owner() {
            return self.refuse();
        }
        Ok(())
    }

    /// Begins an operation: the store as it is now.
    ///
    /// # Errors
    /// `NoTable` when the table is dead, `Busy` when its gate is closed.
    #[inline(always)]
    pub(crate) fn begin<'g>(&self, guard: &'g Guard) -> Result<At<'g>, Error> {
        self.begin_open(guard)
            .ok_or_else(|| self.why_not_open(guard))
    }

    /// As `begin`, for an operation on one key, which may go on beside a list that is being
    /// inserted.
    ///
    /// # Errors
    /// As `begin`.
    #[inline(always)]
    pub(crate) fn begin_on<'g>(
        &self,
        guard: &'g Guard,
        key: &[u8],
        intent: Intent,
    ) -> Result<At<'g>, Error> {
        match self.begin_open(guard) {
            Some(at) => Ok(at),
            None => self.begin_beside(guard, key, intent),
        }
    }

    /// Why an operation can't begin.
    #[cold]
    fn why_not_open(&self, guard: &Guard) -> Error {
        let seen = self.cell.load(guard);
        match seen.get() {
            // It may be open again by now: the operation begins anew.
            Some(_) if seen.tag() & DEAD == 0 => Error::Busy,
            _ => Error::NoTable,
        }
    }

    /// As `begin`, when nobody asks why not.
    #[inline(always)]
    pub(crate) fn begin_open<'g>(&self, guard: &'g Guard) -> Option<At<'g>> {
        let seen = self.cell.load(guard);
        let store = seen.get().filter(|_| seen.tag() == 0)?;
        Some(At {
            guard,
            seen,
            store,
            pass: Pass::OPEN,
        })
    }

    /// Begins a step of the batch that holds the gate.
    pub(crate) fn begin_batch<'g>(&self, guard: &'g Guard) -> Result<At<'g>, Error> {
        let seen = self.cell.load(guard);
        match seen.get() {
            Some(store) if seen.tag() & DEAD == 0 => Ok(At {
                guard,
                seen,
                store,
                pass: Pass::BATCH,
            }),
            _ => Err(Error::NoTable),
        }
    }

    /// Whether a write may go on. Called under the leaf's lock. Tells those who fold that something
    /// may change.
    #[inline]
    pub(crate) fn still(&self, at: &At<'_>) -> bool {
        after_lock();
        self.fixation.watch().note();
        if at.pass != Pass::OPEN {
            return self.still_beside(at);
        }
        self.cell.holds(at.seen, at.guard) || planted(Fault::OpenGate)
    }

    /// `still` while the gate is closed.
    #[cold]
    fn still_beside(&self, at: &At<'_>) -> bool {
        at.pass == Pass::BATCH
            || (self.cell.holds(at.seen, at.guard)
                && at.pass == Pass::settled(self.gate.closings()))
    }

    /// An index key with its hash.
    #[inline]
    pub(crate) fn key<'k>(&self, bytes: &'k [u8]) -> Key<'k> {
        let hash = if self.form == KeyForm::Ordered {
            0
        } else {
            self.seed.hash(bytes)
        };
        Key { bytes, hash }
    }

    /// The store of a live table, whatever its gate: for figures.
    pub(crate) fn store<'g>(&self, guard: &'g Guard) -> Option<&'g Store> {
        let seen = self.cell.load(guard);
        if seen.tag() & DEAD == 0 {
            seen.get()
        } else {
            None
        }
    }

    /// The number of objects; 0 for a dead table. Counts every operation that returned before;
    /// O(1).
    pub fn size(&self) -> usize {
        self.store(&larder_index::pin())
            .map_or(0, |s| s.count.get())
    }

    /// As `size`, at a moment when no list is half inserted and the table is not being emptied.
    ///
    /// # Errors
    /// `NoTable`, `Busy`.
    pub fn settled_size(&self) -> Result<usize, Error> {
        let guard = larder_index::pin();
        // The state word alone doesn't tell a gate that was closed and is open again.
        let closings = self.gate.closings();
        let at = self.begin(&guard)?;
        let size = at.store.count.get();
        // Ordering: the counts come before what follows.
        std::sync::atomic::fence(Ordering::Acquire);
        if self.gate.closings() == closings && self.cell.holds(at.seen, &guard) {
            Ok(size)
        } else {
            Err(Error::Busy)
        }
    }

    /// Bytes of memory that the table holds: itself, its index and the objects in it; binaries kept
    /// outside are not among them, nor are keys remembered for a fixed table. 0 for a dead table.
    pub fn memory(&self) -> usize {
        let guard = larder_index::pin();
        self.store(&guard).map_or(0, |s| {
            s.memory() + size_of::<Self>() + size_of::<Options>() + self.options.structure.len()
        })
    }

    /// Tells the index whether the table is fixed. Whoever changes that, or the index, calls this
    /// afterwards; one at a time, so that the last says what is true.
    pub(crate) fn follow_fixation(&self, _admin: &Admin) {
        if let Some(store) = self.store(&larder_index::pin()) {
            store.freeze(self.fixation.is_fixed());
        }
    }

    /// Figures of the index; zeros for a dead table.
    pub fn stats(&self) -> Stats {
        self.store(&larder_index::pin())
            .map_or_else(Stats::default, Store::stats)
    }
}
