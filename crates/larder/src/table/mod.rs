//! A table: its fixed properties, its state word, rights.
//!
//! The state word ([`EpochCell`]) holds the pointer to the current store and two bits: `LATCHED` (a
//! list batch holds the latch) and `DEAD`. How an operation goes by it: `ops::begin`.

mod catalog;
mod info;
mod owners;
mod registry;

use crate::batch::BatchLatch;
use crate::budget::Budget;
use crate::change_stamp::ChangeStamp;
use crate::error::Error;
use crate::fixation::Fixation;
use crate::ids::{OwnerId, TableId, Who};
use crate::indexes::Indexes;
use crate::keys;
use crate::options::{Access, Options, TableKind};
use crate::raw::EpochCell;
use crate::store::Store;
use crate::versions::{Feed, ViewOf};
use larder_index::sync::Mutex;
use larder_index::{Guard, Key, Stats};
use larder_term::hash::Seed;
use larder_term::object::{self, KeyForm, ObjectBuf, ObjectError};
use larder_term::{Atom, Term, TermRef};
use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock, Weak};

pub(crate) use catalog::Catalog;
pub use info::Info;

/// The state bit of a batch latch that is held.
pub(crate) const LATCHED: usize = 1;
/// The state bit of a dead table.
pub(crate) const DEAD: usize = 2;

/// Under the lock of the table's administration: its heir, with what the heir is told, and whether
/// the table is listed no more.
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
    /// What keys are as bytes, and the seed of their hashes.
    pub(crate) form: KeyForm,
    pub(crate) seed: Seed,
    /// The state word.
    pub(crate) state: EpochCell<Store>,
    pub(crate) latch: BatchLatch,
    pub(crate) changes: ChangeStamp,
    pub(crate) fixation: Fixation,
    /// What may change, under `admin`.
    name: AtomicU32,
    owner: AtomicU64,
    access: AtomicU8,
    pub(crate) admin: Mutex<Admin>,
    pub(crate) beside: Mutex<Option<Beside>>,
    /// Where the table is listed; it goes with the engine.
    catalog: Weak<Catalog>,
    /// What it shows, if that is another table.
    pub(crate) view: Option<ViewOf>,
    /// What changes in it; made with its first history.
    pub(crate) feed: OnceLock<Arc<Feed>>,
}

/// In the byte of access: nobody writes.
const READ_ONLY: u8 = 4;

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

impl Table {
    /// A table that is nowhere listed yet.
    pub(crate) fn make(
        id: TableId,
        options: Options,
        owner: OwnerId,
        catalog: Weak<Catalog>,
    ) -> Self {
        // A model checker's schedules can be run again only if hashes are the same.
        let seed = if cfg!(larder_model) {
            Seed::from_number(id.0)
        } else {
            Seed::random()
        };
        // The options were checked.
        let indexes = match &options.indexes[..] {
            [] => None,
            indexes => {
                let table = (options.keypos, options.kind.is_unique());
                Indexes::new(indexes, table, &seed).ok().flatten()
            }
        };
        let store = Store::new(&options, &seed, indexes);
        Self::with_store(id, options, owner, catalog, (seed, store))
    }

    /// A table that shows another, with this seed, whose objects are in the store.
    pub(crate) fn of_view(
        id: TableId,
        options: Options,
        owner: OwnerId,
        catalog: Weak<Catalog>,
        objects: (Seed, Store),
        of: ViewOf,
    ) -> Self {
        let read_only = if of.writes { 0 } else { READ_ONLY };
        let access = options.access as u8 | read_only;
        Table {
            access: AtomicU8::new(access),
            view: Some(of),
            ..Self::with_store(id, options, owner, catalog, objects)
        }
    }

    /// A table whose keys are hashed with this seed, with the objects of this store.
    fn with_store(
        id: TableId,
        mut options: Options,
        owner: OwnerId,
        catalog: Weak<Catalog>,
        (seed, store): (Seed, Store),
    ) -> Self {
        // The heir and its data lie in `admin` alone, and go together.
        let heir = options.heir.take();
        let form = if options.kind.is_ordered() {
            KeyForm::Ordered
        } else {
            KeyForm::Hash {
                legacy_zero: options.legacy_zero,
            }
        };
        Table {
            id,
            keypos: options.keypos,
            kind: options.kind,
            compressed: options.compressed,
            state: EpochCell::new(store),
            form,
            seed,
            latch: BatchLatch::default(),
            changes: ChangeStamp::default(),
            fixation: Fixation::default(),
            name: AtomicU32::new(options.name.id()),
            owner: AtomicU64::new(owner.raw()),
            access: AtomicU8::new(options.access as u8),
            admin: Mutex::new(Admin { heir, gone: false }),
            beside: Mutex::default(),
            options: Box::new(options),
            catalog,
            view: None,
            feed: OnceLock::new(),
        }
    }

    /// The table's feed.
    pub(crate) fn feed(&self) -> &Arc<Feed> {
        self.feed.get_or_init(|| Arc::new(Feed::new(self.id)))
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
        match self.access.load(Ordering::Relaxed) & !READ_ONLY {
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
        // Ordering: Acquire, pairs with `set_owner`: a thread that sees the new owner sees what the
        // transfer did before.
        OwnerId::from_raw(self.owner.load(Ordering::Acquire))
    }

    pub(crate) fn set_owner(&self, owner: OwnerId) {
        // Ordering: Release, pairs with `owner`; changed under `admin`.
        self.owner.store(owner.raw(), Ordering::Release);
    }

    /// Whether the table has not been dropped.
    pub fn is_alive(&self) -> bool {
        self.state.tag() & DEAD == 0
    }

    /// The form of this table's keys, for those who encode objects themselves.
    #[inline]
    pub fn key_form(&self) -> KeyForm {
        self.form
    }

    /// Appends the index key of a term to `out`. Linear in the term.
    pub fn encode_key(&self, key: TermRef<'_>, out: &mut Vec<u8>) {
        keys::encode(self.form, key, out);
    }

    /// Encodes a tuple as an object of this table.
    ///
    /// # Errors
    /// `NotTuple`, and `Keypos` if the tuple is too short to have a key.
    pub fn encode_object(&self, tuple: TermRef<'_>, out: &mut ObjectBuf) -> Result<(), Error> {
        object::encode(
            tuple,
            self.keypos(),
            self.key_form(),
            self.compressed(),
            out,
        )
        .map_err(|e| match e {
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
            return self.refuse(Error::Access);
        }
        self.check_alive()
    }

    /// Whether `who` may write the table.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `ReadOnly`.
    #[inline]
    pub fn check_write(&self, who: OwnerId) -> Result<(), Error> {
        self.may_write(who)?;
        self.check_alive()
    }

    /// A dead table's error comes before the lack of a right.
    #[cold]
    fn refuse(&self, why: Error) -> Result<(), Error> {
        self.check_alive()?;
        Err(why)
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
            return self.refuse(Error::Access);
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
        // Ordering: Relaxed, as in `access`.
        let access = self.access.load(Ordering::Relaxed);
        let is_public = access == Access::Public as u8;
        if !is_public && (access >= READ_ONLY || self.owner() != who.owner()) {
            let read_only = self.view.as_ref().map(|view| view.why_read_only());
            return self.refuse(read_only.unwrap_or(Error::Access));
        }
        Ok(())
    }

    /// An index key with its hash, which an ordered_set has no use for.
    #[inline]
    pub(crate) fn key<'k>(&self, bytes: &'k [u8]) -> Key<'k> {
        let hash = if self.form == KeyForm::Ordered {
            0
        } else {
            self.seed.hash(bytes)
        };
        Key { bytes, hash }
    }

    /// The store of a live table, whatever holds its latch: for figures.
    pub(crate) fn store<'g>(&self, guard: &'g Guard) -> Option<&'g Store> {
        // Figures may be asked for while the latch is held: the store is the same, and its counts
        // are what they are.
        let seen = self.state.load(guard);
        if seen.tag() & DEAD == 0 {
            seen.get()
        } else {
            None
        }
    }

    /// The number of objects; 0 for a dead table. Counts every operation that returned before;
    /// O(1), but for a snapshot, which is read from end to end the first time.
    pub fn size(&self) -> usize {
        let guard = larder_index::pin();
        let size = |store| self.size_of(store, &mut Budget::unlimited());
        self.store(&guard).and_then(size).unwrap_or(0)
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
        // `admin` keeps two such calls apart: the index never ends up with the older answer.
        if let Some(store) = self.store(&larder_index::pin()) {
            store.index.freeze(self.fixation.is_fixed());
        }
    }

    /// Figures of the index; zeros for a dead table.
    pub fn stats(&self) -> Stats {
        self.store(&larder_index::pin())
            .map_or_else(Stats::default, |s| s.index.stats())
    }
}
