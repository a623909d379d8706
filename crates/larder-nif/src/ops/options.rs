//! Options of new/2 and setopts/2: from lists of terms to the engine's types. An option that isn't
//! understood is a bad argument. Other files of `ops` read their own options with the functions
//! for single ones.

use crate::call::{each, Call, Raise, BADARG};
use crate::layout;
use crate::sys::*;
use crate::tables::{self, owners};
use crate::terms::atoms::{self, Known};
use crate::terms::encode;
use larder::host::{
    Access, Concurrency, Evict, IndexDefinition, IndexOn, Limits, Options, OwnerId, StructureValue,
    TableKind,
};
use larder_term::Term;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether 0.0 and -0.0 are identical in the host.
static LEGACY_ZERO: AtomicBool = AtomicBool::new(false);

/// Finds out how the host compares zeros. Called when the library is loaded.
pub fn load(env: *mut Env) {
    // SAFETY: `env` is the environment of the running load callback.
    let legacy =
        unsafe { enif_is_identical(enif_make_double(env, 0.0), enif_make_double(env, -0.0)) != 0 };
    // Ordering: Relaxed; written at load, before any other function of the library can run.
    LEGACY_ZERO.store(legacy, Ordering::Relaxed);
    larder_term::set_legacy_zero(legacy);
}

/// Whether 0.0 and -0.0 are identical in the host.
pub fn legacy_zero() -> bool {
    // Ordering: Relaxed, see `load`.
    LEGACY_ZERO.load(Ordering::Relaxed)
}

/// Encodes a term of the host for the engine.
pub fn owned(call: &Call<'_>, word: Word) -> Result<Term, Raise> {
    encode::copied(call.env, word)?.into_term().ok_or(BADARG)
}

/// An heir, and the data for its message: a 1-tuple of the data, or `none` if there is to be no
/// message.
pub type Heir = Option<(OwnerId, Term)>;

/// Reads the option `{heir, ...}`. The heir is monitored from now on. If it has already ended, it
/// is treated as no heir when the time comes.
pub fn heir(call: &Call<'_>, parts: &[Word]) -> Result<Heir, Raise> {
    match parts {
        // No heir, an heir without data, or an heir with data for its message.
        [none] if *none == atoms::NONE.word() => Ok(None),
        [pid] => Ok(Some((heir_id(call, *pid)?, Term::atom("none")))),
        [pid, data] => {
            let id = heir_id(call, *pid)?;
            Ok(Some((id, Term::tuple([owned(call, *data)?]))))
        }
        _ => Err(BADARG),
    }
}

fn heir_id(call: &Call<'_>, pid: Word) -> Result<OwnerId, Raise> {
    let pid = local_pid(call, pid)?;
    owners::watch(call.env, pid);
    Ok(owners::id(pid))
}

/// A pid of this node.
pub fn local_pid(call: &Call<'_>, word: Word) -> Result<Pid, Raise> {
    let mut pid = Pid { pid: 0 };
    // SAFETY: `env` and the term are the running call's.
    let is_local = unsafe { enif_get_local_pid(call.env, word, &mut pid) } != 0;
    is_local.then_some(pid).ok_or(BADARG)
}

/// `true` or `false`.
pub fn flag(word: Word) -> Result<bool, Raise> {
    match word {
        _ if word == atoms::TRUE.word() => Ok(true),
        _ if word == atoms::FALSE.word() => Ok(false),
        _ => Err(BADARG),
    }
}

/// Reads the options of new/2. If options contradict each other, the last one counts. `set` and
/// `protected` have no effect, as in `ets`: they don't undo an earlier option.
pub fn parse(call: &Call<'_>, name: Word, list: Word) -> Result<Options, Raise> {
    if !layout::is_atom(name) {
        return Err(BADARG);
    }
    let mut parsed = Parsed {
        // Some options depend on others, so they are resolved at the end (`finish`).
        options: Options::new(atoms::from_word(call.env, name)),
        counters: None,
    };
    parsed.options.legacy_zero = legacy_zero();
    // Options are applied in order, so a later one replaces an earlier one.
    each(list, |option| match layout::tuple(option) {
        Some([tag, parts @ ..]) => tuple_option(call, *tag, parts, &mut parsed),
        Some([]) => Err(BADARG),
        None => atom_option(option, &mut parsed.options),
    })?;
    Ok(parsed.finish())
}

/// The options that were read so far.
struct Parsed {
    options: Options,
    counters: Option<bool>,
}

impl Parsed {
    /// Tuning options have no effect on a private table. Without write_concurrency the counters are
    /// centralized. With it they are as the options say; by default they are decentralized for
    /// `auto` and for an ordered_set.
    fn finish(self) -> Options {
        let mut options = self.options;
        if options.access == Access::Private {
            options.write_concurrency = Concurrency::Off;
            options.read_concurrency = false;
        }
        let usual =
            options.write_concurrency == Concurrency::Auto || options.kind == TableKind::OrderedSet;
        let tuned = options.write_concurrency != Concurrency::Off;
        options.decentralized_counters = tuned && self.counters.unwrap_or(usual);
        options
    }
}

/// Applies an option that is an atom.
fn atom_option(option: Word, options: &mut Options) -> Result<(), Raise> {
    let is = |known: Known| option == known.word();
    // The defaults have no effect, even after other options.
    match () {
        _ if is(atoms::SET) || is(atoms::PROTECTED) => {}
        _ if is(atoms::ORDERED_SET) => options.kind = TableKind::OrderedSet,
        _ if is(atoms::BAG) => options.kind = TableKind::Bag,
        _ if is(atoms::DUPLICATE_BAG) => options.kind = TableKind::DuplicateBag,
        _ if is(atoms::PUBLIC) => options.access = Access::Public,
        _ if is(atoms::PRIVATE) => options.access = Access::Private,
        _ if is(atoms::NAMED_TABLE) => options.named = true,
        _ if is(atoms::COMPRESSED) => options.compressed = true,
        _ => return Err(BADARG),
    }
    Ok(())
}

/// Applies an option that is a tuple of its name and these parts.
fn tuple_option(
    call: &Call<'_>,
    tag: Word,
    parts: &[Word],
    parsed: &mut Parsed,
) -> Result<(), Raise> {
    let options = &mut parsed.options;
    let is = |known: Known| tag == known.word();
    // The heir is the only option with several parts.
    if is(atoms::HEIR) {
        options.heir = heir(call, parts)?;
        return Ok(());
    }
    let [value] = *parts else { return Err(BADARG) };
    match () {
        _ if is(atoms::KEYPOS) => options.keypos = tables::positive(value)?,
        _ if is(atoms::WRITE_CONCURRENCY) => options.write_concurrency = concurrency(value)?,
        _ if is(atoms::READ_CONCURRENCY) => options.read_concurrency = flag(value)?,
        _ if is(atoms::DECENTRALIZED_COUNTERS) => parsed.counters = Some(flag(value)?),
        _ if is(atoms::TTL) => options.bounds.get_or_insert_default().ttl = time(call, value)?,
        _ if is(atoms::IDLE) => options.bounds.get_or_insert_default().idle = time(call, value)?,
        _ if is(atoms::MAX_SIZE) => limits(options).max_size = most(call, value)?,
        _ if is(atoms::MAX_MEMORY) => limits(options).max_memory = most(call, value)?,
        _ if is(atoms::EVICT) => limits(options).evict = policy(value)?,
        _ if is(atoms::STRUCTURE) => structure(call, value, options)?,
        _ if is(atoms::INDEX) => {
            let mut indexes = options.indexes.to_vec();
            each(value, |entry| {
                indexes.push(index(call, entry)?);
                Ok(())
            })?;
            options.indexes = indexes.into();
        }
        _ => return Err(BADARG),
    }
    Ok(())
}

/// Milliseconds, or `infinity`.
pub fn time(call: &Call<'_>, value: Word) -> Result<Option<u64>, Raise> {
    Ok(most(call, value)?.map(|ms| ms as u64))
}

/// A limit: a natural number, or `None` for `infinity` and for numbers that are too large to be
/// reached.
pub fn most(call: &Call<'_>, value: Word) -> Result<Option<usize>, Raise> {
    if value == atoms::INFINITY.word() {
        return Ok(None);
    }
    let number = tables::integer(call, value).and_then(|n| usize::try_from(n).ok());
    number.map(|n| (n < UNREACHED).then_some(n)).ok_or(BADARG)
}

/// The least positive integer that isn't a small integer of the emulator's. No time and no size
/// reaches it.
const UNREACHED: usize = 1 << 59;

fn limits(options: &mut Options) -> &mut Limits {
    let bounds = options.bounds.get_or_insert_default();
    bounds.limits.get_or_insert_default()
}

/// The policy by which a table evicts.
pub fn policy(value: Word) -> Result<Evict, Raise> {
    match value {
        _ if value == atoms::NONE.word() => Ok(Evict::None),
        _ if value == atoms::LRU.word() => Ok(Evict::Lru),
        _ if value == atoms::TINYLFU.word() => Ok(Evict::TinyLfu),
        _ if value == atoms::SIEVE.word() => Ok(Evict::Sieve),
        _ => Err(BADARG),
    }
}

/// `Name` or `{Name, [{Option, Value}]}`.
fn structure(call: &Call<'_>, value: Word, options: &mut Options) -> Result<(), Raise> {
    let (name, list) = match layout::tuple(value) {
        None => (value, layout::NIL),
        Some(&[name, list]) => (name, list),
        Some(_) => return Err(BADARG),
    };
    options.structure = text(call, name)?.into();
    options.structure_options.clear();
    each(list, |option| {
        let Some(&[name, value]) = layout::tuple(option) else {
            return Err(BADARG);
        };
        // The form of the value says its type. Whether the option takes it is checked when the
        // table is made.
        let value = match (layout::small(value), flag(value)) {
            (Some(n), _) => StructureValue::Int(n),
            (_, Ok(flag)) => StructureValue::Flag(flag),
            // A value of another kind has no name, which no option takes: the error says what
            // this option does.
            _ => StructureValue::Name(text(call, value).unwrap_or_default()),
        };
        options.structure_options.push((text(call, name)?, value));
        Ok(())
    })
}

/// `{Name, Position | Expression, Options}` of a secondary index.
pub fn index(call: &Call<'_>, entry: Word) -> Result<IndexDefinition, Raise> {
    let Some(&[name, on, choices]) = layout::tuple(entry) else {
        return Err(BADARG);
    };
    if !layout::is_atom(name) {
        return Err(BADARG);
    }
    // An integer is a position, also one that no tuple has. Anything else is an expression, which
    // is compiled later.
    let on = match tables::integer(call, on) {
        Some(n) => {
            let position = usize::try_from(n).ok().filter(|&n| n > 0);
            IndexOn::Element(position.ok_or(BADARG)?)
        }
        None => IndexOn::Expression(owned(call, on)?),
    };
    let mut definition = IndexDefinition::new(atoms::from_word(call.env, name), on);
    each(choices, |choice| {
        match () {
            _ if choice == atoms::UNIQUE.word() => definition.unique = true,
            _ if choice == atoms::EACH.word() => definition.each = true,
            // Every index is ordered.
            _ if choice == atoms::ORDERED.word() => {}
            _ => return Err(BADARG),
        }
        Ok(())
    })?;
    Ok(definition)
}

/// The text of an atom.
fn text(call: &Call<'_>, word: Word) -> Result<String, Raise> {
    if !layout::is_atom(word) {
        return Err(BADARG);
    }
    Ok(atoms::from_word(call.env, word).text().to_owned())
}

fn concurrency(value: Word) -> Result<Concurrency, Raise> {
    if value == atoms::AUTO.word() {
        return Ok(Concurrency::Auto);
    }
    Ok(if flag(value)? {
        Concurrency::On
    } else {
        Concurrency::Off
    })
}
