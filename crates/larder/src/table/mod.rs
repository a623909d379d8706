//! A table: its fixed properties, its state word, and access rights.
//!
//! The state word ([`EpochCell`]) holds the pointer to the current store and two bits: `LATCHED` (a
//! list batch holds the latch) and `DEAD`. For its use by operations see `ops::begin`.

mod catalog;
mod info;
mod owners;
mod registry;
mod view_of;

use crate::batch::BatchLatch;
use crate::budget::Budget;
use crate::change_stamp::ChangeStamp;
use crate::error::Error;
use crate::fixation::Fixation;
use crate::ids::{OwnerId, TableId, Who};
use crate::indexes::{Indexes, TableKeys};
use crate::keys::{self, KeyList};
use crate::options::{Access, Options, TableKind};
use crate::programs::KeyAccess;
use crate::raw::EpochCell;
use crate::reclaim::Reaped;
use crate::store::Store;
use crate::versions::{Differences, TableFeed};
use larder_index::sync::Mutex;
use larder_index::{Guard, Key, Stats};
use larder_term::hash::Seed;
use larder_term::object::{self, KeyForm, ObjectBuf, ObjectEncoder, ObjectError, OutOfLineBytes};
use larder_term::{Atom, Term, TermRef};
use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock, Weak};

pub(crate) use catalog::Catalog;
pub use info::Info;
pub(crate) use owners::{Estate, SettleKey, Settled};
pub(crate) use view_of::{SnapshotOf, ViewOf};

/// The state bit that says that a batch holds the latch.
pub(crate) const LATCHED: usize = 1;
/// The state bit of a dead table.
pub(crate) const DEAD: usize = 2;

/// The state under the lock `admin`: the heir, with the data of the message to it, and whether the
/// table was removed from all lists.
pub(crate) struct Admin {
    pub(crate) heir: Option<(OwnerId, Term)>,
    pub(crate) dropped: bool,
}

/// A table of tuples. It is created by `Engine::create`, and shared as an `Arc`. After it was
/// dropped, every operation returns `NoTable`.
pub struct EngineTable {
    pub(crate) id: TableId,
    /// The options that every operation reads, next to its other fields.
    keypos: usize,
    kind: TableKind,
    compressed: bool,
    /// Where elements out of line are counted. `None` if there are none: objects are compressed, or
    /// this is a snapshot.
    out_of_line: Option<Arc<OutOfLineBytes>>,
    pub(crate) options: Box<Options>,
    /// The encoding of keys, and the seed of their hashes.
    pub(crate) form: KeyForm,
    pub(crate) seed: Seed,
    /// The state word.
    pub(crate) state: EpochCell<Store>,
    pub(crate) latch: BatchLatch,
    pub(crate) changes: ChangeStamp,
    pub(crate) fixation: Fixation,
    /// The properties that may change, under `admin`.
    name: AtomicU32,
    owner: AtomicU64,
    access: AtomicU8,
    pub(crate) admin: Mutex<Admin>,
    pub(crate) host_data: Mutex<Option<HostData>>,
    /// The lists that contain the table. They are dropped with the engine.
    catalog: Weak<Catalog>,
    /// The description of the view, if the table shows another one.
    pub(crate) view: Option<ViewOf>,
    /// The feed; created with the first history.
    pub(crate) feed: OnceLock<Arc<TableFeed>>,
}

/// A value of the access byte: nobody may write.
const READ_ONLY: u8 = 4;

/// Data of the host that belong to a table.
pub type HostData = Box<dyn Any + Send + Sync>;

impl fmt::Debug for EngineTable {
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

impl EngineTable {
    /// Makes a table that is in no list yet.
    pub(crate) fn make(
        id: TableId,
        options: Options,
        owner: OwnerId,
        catalog: Weak<Catalog>,
    ) -> Self {
        // The model checker can repeat a schedule only if hashes are the same. A unit test has keys
        // that are known to collide.
        let seed = match () {
            _ if cfg!(larder_model) => Seed::from_number(id.0),
            _ if cfg!(test) => Seed::from_number(1),
            _ => Seed::random(),
        };
        // The options were checked.
        let indexes = match &options.indexes[..] {
            [] => None,
            indexes => {
                let keys = TableKeys {
                    position: options.keypos,
                    one_row: options.kind.is_unique(),
                };
                Indexes::new(indexes, keys, &seed).ok().flatten()
            }
        };
        let store = Store::new(&options, &seed, indexes);
        Self::with_store(id, options, owner, catalog, seed, store)
    }

    /// Makes a table that shows another one, with this seed. Its objects are in the store.
    pub(crate) fn of_view(
        id: TableId,
        options: Options,
        owner: OwnerId,
        catalog: Weak<Catalog>,
        seed: Seed,
        store: Store,
        of: ViewOf,
    ) -> Self {
        // A view that may be written to has the rights of its table. Any other is read-only,
        // whatever the rights are.
        let read_only = if of.writes { 0 } else { READ_ONLY };
        let access = options.access as u8 | read_only;
        EngineTable {
            access: AtomicU8::new(access),
            out_of_line: of.out_of_line.clone(),
            view: Some(of),
            ..Self::with_store(id, options, owner, catalog, seed, store)
        }
    }

    /// Makes a table with this seed for the hashes of its keys, and with the objects of this store.
    fn with_store(
        id: TableId,
        mut options: Options,
        owner: OwnerId,
        catalog: Weak<Catalog>,
        seed: Seed,
        store: Store,
    ) -> Self {
        // The heir and its data are only in `admin`, and are dropped together.
        let heir = options.heir.take();
        // The form of keys follows from the type, and never changes.
        let form = if options.kind.is_ordered() {
            KeyForm::Ordered
        } else {
            KeyForm::Hash {
                legacy_zero: options.legacy_zero,
            }
        };
        // What operations on objects use comes first. What only `info` and the catalog need is
        // boxed or under a lock.
        EngineTable {
            id,
            keypos: options.keypos,
            kind: options.kind,
            compressed: options.compressed,
            out_of_line: (!options.compressed).then(Arc::default),
            state: EpochCell::new(store),
            form,
            seed,
            latch: BatchLatch::default(),
            changes: ChangeStamp::default(),
            fixation: Fixation::default(),
            name: AtomicU32::new(options.name.id()),
            owner: AtomicU64::new(owner.raw()),
            access: AtomicU8::new(options.access as u8),
            admin: Mutex::new(Admin {
                heir,
                dropped: false,
            }),
            host_data: Mutex::default(),
            options: Box::new(options),
            catalog,
            view: None,
            feed: OnceLock::new(),
        }
    }

    /// The table's feed.
    pub(crate) fn feed(&self) -> &Arc<TableFeed> {
        self.feed.get_or_init(|| Arc::new(TableFeed::new(self.id)))
    }

    /// The table's number.
    pub fn id(&self) -> TableId {
        self.id
    }

    /// The table's name.
    pub fn name(&self) -> Atom {
        // Ordering: Relaxed; a number, and atoms are never freed.
        Atom::from_id(self.name.load(Ordering::Relaxed)).unwrap_or(self.options.name)
    }

    pub(crate) fn set_name(&self, name: Atom) {
        // Ordering: Relaxed, as in `name`; changed under `admin`.
        self.name.store(name.id(), Ordering::Relaxed);
    }

    /// Whether the table can be found by its name.
    #[inline]
    pub fn is_named(&self) -> bool {
        self.options.named
    }

    /// The type.
    #[inline]
    pub fn kind(&self) -> TableKind {
        self.kind
    }

    /// The access rights.
    #[inline]
    pub fn access(&self) -> Access {
        // Ordering: Relaxed; if a right changes while an operation begins, the operation uses the
        // old or the new one.
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

    /// Whether objects are stored compressed.
    #[inline]
    pub fn compressed(&self) -> bool {
        self.compressed
    }

    /// Where the table counts the bytes of its elements out of line. `None` if it has none.
    #[inline]
    pub fn out_of_line(&self) -> Option<&Arc<OutOfLineBytes>> {
        self.out_of_line.as_ref()
    }

    /// Calls `f` with the place for data of the host, which is empty at first. The data are dropped
    /// when the table is dropped. A lock is held, so `f` must be short. Data that are stored after
    /// the table was dropped stay, so `f` must check whether it lives.
    pub fn with_beside<R>(&self, f: impl FnOnce(&mut Option<HostData>) -> R) -> R {
        f(&mut self.host_data.lock())
    }

    /// The options with which the table was created. Name, owner, heir and access may have changed
    /// since.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The current owner.
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

    /// Whether the table is a snapshot or a transaction's view.
    pub fn is_view(&self) -> bool {
        self.view.is_some()
    }

    /// Whether counting objects may take long: in a view of which many keys have changed, or in a
    /// transaction's view of a large table. O(1).
    pub fn counts_slowly(&self) -> bool {
        const MANY: usize = 10_000;
        if !self.is_view() {
            return false;
        }
        let guard = larder_index::pin();
        let views = self.store(&guard).map_or(&[][..], Store::views);
        let all = |view: &dyn Differences| match self.is_snapshot() {
            true => view.about(),
            false => view.about() + view.table_size(),
        };
        views.iter().any(|view| all(&**view) > MANY)
    }

    /// The form of this table's keys, for callers that encode objects themselves.
    #[inline]
    pub fn key_form(&self) -> KeyForm {
        self.form
    }

    /// How a program's plan finds this table's keys.
    pub(crate) fn key_access(&self) -> KeyAccess {
        match self.form {
            KeyForm::Ordered => KeyAccess::Ordered,
            KeyForm::Hash { .. } => KeyAccess::Hash,
        }
    }

    /// Appends the index key of a term to `out`. Linear in the size of the term.
    pub fn encode_key(&self, key: TermRef<'_>, out: &mut Vec<u8>) {
        keys::encode(self.form, key, out);
    }

    /// The index keys of some terms, in order. Each is there once: terms that differ may have one
    /// index key, as 1 and 1.0 in an ordered_set.
    pub(crate) fn index_keys(&self, terms: &[Term]) -> KeyList {
        let mut keys = KeyList::new();
        keys.reserve(
            terms.len(),
            terms.iter().map(|term| term.bytes().len()).sum(),
        );
        for term in terms {
            keys.push_by(|out| self.encode_key(term.as_ref(), out));
        }
        keys.sort();
        keys
    }

    /// An encoder of an object of this table with `arity` elements.
    #[inline]
    pub fn encoder<'b>(&'b self, object: &'b mut ObjectBuf, arity: usize) -> ObjectEncoder<'b> {
        let (form, compressed) = (self.key_form(), self.compressed());
        let encoder = ObjectEncoder::new(object, arity, self.keypos(), form, compressed);
        match &self.out_of_line {
            Some(total) => encoder.out_of_line(total),
            None => encoder,
        }
    }

    /// Encodes a tuple as an object of this table.
    ///
    /// # Errors
    /// `NotTuple`, and `Keypos` if the tuple is too short to have a key.
    pub fn encode_object(&self, tuple: TermRef<'_>, out: &mut ObjectBuf) -> Result<(), Error> {
        let (keypos, form, compressed) = (self.keypos(), self.key_form(), self.compressed());
        object::encode_out_of_line(tuple, keypos, form, compressed, out, self.out_of_line())
            // Errors of the encoding become those of the table.
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
    pub fn check_read(&self, who: impl Who) -> Result<(), Error> {
        self.may_read(who)?;
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

    /// For a dead table this is `NoTable`, even if the right is missing, too.
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

    /// Checks the right to read, without checking whether the table lives, which `begin` does.
    #[inline]
    pub(crate) fn may_read(&self, who: impl Who) -> Result<(), Error> {
        if self.access() == Access::Private && self.owner() != who.owner() {
            return self.refuse(Error::Access);
        }
        Ok(())
    }

    /// Checks the right to write, without checking whether the table lives, which each operation
    /// does.
    ///
    /// # Errors
    /// `NoTable`, `Access`.
    #[inline]
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

    /// An index key with its hash.
    #[inline]
    pub(crate) fn key<'k>(&self, bytes: &'k [u8]) -> Key<'k> {
        keys::with_hash(&self.seed, self.form == KeyForm::Ordered, bytes)
    }

    /// An index key whose hash by the table's seed is known.
    #[inline]
    pub(crate) fn key_with<'k>(&self, bytes: &'k [u8], hash: u64) -> Key<'k> {
        match self.form {
            KeyForm::Ordered => Key { bytes, hash: 0 },
            _ => Key { bytes, hash },
        }
    }

    /// The store of a live table, even if its latch is held. For statistics.
    pub(crate) fn store<'g>(&self, guard: &'g Guard) -> Option<&'g Store> {
        // Statistics may be read while the latch is held. The store is the same, and its counts are
        // the current ones.
        let seen = self.state.load(guard);
        if seen.tag() & DEAD == 0 {
            seen.get()
        } else {
            None
        }
    }

    /// The number of objects; 0 for a dead table. It includes all operations that returned before.
    /// O(1), except for a snapshot, which is scanned the first time.
    pub fn size(&self) -> usize {
        let guard = larder_index::pin();
        let size = |store| self.size_of(store, &mut Budget::unlimited());
        self.store(&guard).and_then(size).unwrap_or(0)
    }

    /// The memory of the table in bytes: the table itself, its index and the objects in it. It
    /// doesn't include binaries outside, and keys that are recorded for a fixed table. 0 for a dead
    /// table.
    pub fn memory(&self) -> usize {
        let guard = larder_index::pin();
        // What a transaction's view puts out of line is counted by the table.
        let total = self.out_of_line().filter(|_| self.view.is_none());
        let out_of_line = total.map_or(0, |total| total.get());
        self.store(&guard).map_or(0, |s| {
            let options = size_of::<Options>() + self.options.structure.len();
            s.memory() + size_of::<Self>() + options + out_of_line
        })
    }

    /// Announces to the index about how many keys there are and will soon be. Two zeros say that
    /// nothing is known.
    #[cfg(feature = "files")]
    pub(crate) fn expect_keys(&self, now: usize, soon: usize) {
        let guard = larder_index::pin();
        if let Some(store) = self.store(&guard) {
            store.index.expect_keys(now, soon);
        }
    }

    /// Tells the index whether the table is fixed. A thread that changes that, or replaces the
    /// index, calls this afterwards. Calls are serialized, so the last one has the current state.
    pub(crate) fn pass_fixation_to_index(&self, _admin: &Admin) {
        // `admin` serializes the calls, so the index never ends up with an old state.
        if let Some(store) = self.store(&larder_index::pin()) {
            store.index.freeze(self.fixation.is_fixed());
        }
    }

    /// Statistics of the index; zeros for a dead table.
    pub fn stats(&self) -> Stats {
        self.store(&larder_index::pin())
            .map_or_else(Stats::default, |s| s.index.stats())
    }
}
