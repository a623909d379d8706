//! Options of tables: a structure that may grow.
//!
//! A program passes the size of its `larder_options`. New fields are only added at the end, and
//! zero means what a library without the field does. So a program works with a newer library. It
//! also works with an older one, unless it sets a field that the library doesn't know, which is an
//! error.

use crate::status::{Failure, Status};
use crate::terms::text_at;
use ::larder::api::Builder;
use ::larder::Evict;
use std::ffi::{c_char, c_int};
use std::mem::{offset_of, size_of, MaybeUninit};
use std::time::Duration;

/// The type of a table: how many rows a key may have, and the order of keys.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum larder_type {
    /// One row per key, in no order.
    Set = 0,
    /// One row per key, in the order of keys; 1 and 1.0 are the same key.
    OrderedSet = 1,
    /// Any number of different rows per key, in order of arrival.
    Bag = 2,
    /// Any number of rows per key, which may be equal, in order of arrival.
    DuplicateBag = 3,
}

impl larder_type {
    const ALL: [larder_type; 4] = [
        larder_type::Set,
        larder_type::OrderedSet,
        larder_type::Bag,
        larder_type::DuplicateBag,
    ];
}

/// What happens when a table has reached its limit.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum larder_evict {
    /// Writes that need room are refused: `LARDER_FULL`.
    None = 0,
    /// Of a sample of rows, those are evicted that have not been read or written for the longest
    /// time.
    Lru = 1,
    /// Of a sample of rows, those are evicted that have been read or written least often lately; or
    /// a new row, if its key hasn't been used more often.
    TinyLfu = 2,
    /// Of a sample of rows, in the order of their insertion, the next ones are evicted that have
    /// not been read or written since it was last their turn (SIEVE).
    Sieve = 3,
}

impl larder_evict {
    const ALL: [larder_evict; 4] = [
        larder_evict::None,
        larder_evict::Lru,
        larder_evict::TinyLfu,
        larder_evict::Sieve,
    ];
}

/// The options of a table. If all fields except the size are zero, the table is a set, and the key
/// is the first element of a row.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct larder_options {
    /// `sizeof(larder_options)`, by which the library knows the fields that the program has. Later
    /// versions of the library may add fields at the end.
    pub size: usize,
    /// A `larder_type`.
    pub kind: c_int,
    /// A `larder_evict`, for a table that has `max_size` or `max_memory`.
    pub evict: c_int,
    /// The position of the key in each row, counted from 1; 0 means 1.
    pub keypos: usize,
    /// Whether `larder_table_find` finds the table by its name, which must then be unique.
    pub named: bool,
    /// Whether rows are compressed, which takes less memory, but more time for each access.
    pub compressed: bool,
    /// Whether rows are counted by several counters, which is faster for many writers, but takes
    /// 4 KiB for the table, and makes reading the size slower. A table with limits ignores it.
    pub decentralized_counters: bool,
    /// The structure of the table, with its options, such as `"btree"` or
    /// `"catree(over=btree,m=16)"`; null for the default, which is best in nearly all cases.
    pub structure: *const c_char,
    /// The time in milliseconds after which a row expires, unless `larder_insert_for` sets another
    /// one; 0: never. This and all following options are for sets and ordered_sets with the default
    /// structure.
    pub ttl_ms: u64,
    /// The least time in milliseconds after which a row expires that is neither written nor looked
    /// up by its key; 0: never.
    pub idle_ms: u64,
    /// The largest number of rows; 0: no limit.
    pub max_size: usize,
    /// The largest number of bytes that the rows may take; 0: no limit. They are those of the key
    /// and the elements as they are stored, of long binaries, and 32 more for each row.
    pub max_memory: usize,
}

/// The size of the first version of the options.
const MIN_SIZE: usize = offset_of!(larder_options, max_memory) + size_of::<usize>();

/// More than the size of any version. If the size is larger, the field wasn't set.
const MAX_PLAUSIBLE_SIZE: usize = 4096;

/// Copies the options of a program, whose version may be older or newer.
///
/// # Safety
/// `options` has as many bytes as its size says, and each `bool` of it is true or false.
unsafe fn copied(options: *const larder_options) -> Result<larder_options, Failure> {
    let bad = |text| Err(Failure::new(Status::BadOption, text));
    // SAFETY: by contract, `options` has as many bytes as its size says. The size is one of them,
    // as it is the first field of every version.
    let size = unsafe { options.cast::<usize>().read() };
    if !(MIN_SIZE..=MAX_PLAUSIBLE_SIZE).contains(&size) {
        return bad(format!(
            "options.size is {size}: it has to be sizeof(larder_options)"
        ));
    }
    let known = size_of::<larder_options>();
    let bytes = options.cast::<u8>();
    // SAFETY: by contract, `options` has `size` bytes, and `at` is less than `size`.
    let newer = (known..size).map(|at| unsafe { bytes.add(at).read() });
    if newer.into_iter().any(|byte| byte != 0) {
        let version = env!("CARGO_PKG_VERSION");
        return bad(format!(
            "options has a field that is not zero and that Larder {version} does not know"
        ));
    }
    let mut copy = MaybeUninit::<larder_options>::zeroed();
    // SAFETY: by contract, `options` has `size` bytes. `copy` has `known` bytes and is new, so they
    // don't overlap. By contract, each `bool` is true or false, and any bytes are a value of the
    // other fields. The fields that aren't copied are zero, which is a value of each.
    unsafe {
        bytes.copy_to_nonoverlapping(copy.as_mut_ptr().cast(), size.min(known));
        Ok(copy.assume_init())
    }
}

/// Applies the options to a builder.
///
/// # Safety
/// `options` has as many bytes as its size says, and each `bool` of it is true or false;
/// `structure` is null or ends with a NUL.
pub(crate) unsafe fn apply(
    options: *const larder_options,
    builder: Builder,
) -> Result<Builder, Failure> {
    // SAFETY: the contract of `copied` is a part of this function's.
    let options = unsafe { copied(options) }?;
    // An enum of C may have any number. It is looked up, not cast.
    let mut all = larder_type::ALL.into_iter();
    let mut builder = match all.find(|kind| *kind as c_int == options.kind) {
        Some(larder_type::Set) => builder.set(),
        Some(larder_type::OrderedSet) => builder.ordered_set(),
        Some(larder_type::Bag) => builder.bag(),
        Some(larder_type::DuplicateBag) => builder.duplicate_bag(),
        None => {
            let text = format!("there is no kind of table {}", options.kind);
            return Err(Failure::new(Status::BadOption, text));
        }
    };
    // Zero means that the program hasn't set it.
    builder = builder.keypos(options.keypos.max(1));
    if options.named {
        builder = builder.named();
    }
    if options.compressed {
        builder = builder.compressed();
    }
    if options.decentralized_counters {
        builder = builder.decentralized_counters();
    }
    if !options.structure.is_null() {
        // SAFETY: `structure` is not null, so by contract it ends with a NUL.
        builder = builder.structure_text(unsafe { text_at(options.structure, "structure") }?);
    }
    bounded(&options, builder)
}

/// Applies the bounds to a builder. A table without bounds doesn't pay for them.
fn bounded(options: &larder_options, mut builder: Builder) -> Result<Builder, Failure> {
    let bad = |text| Err(Failure::new(Status::BadOption, text));
    if options.ttl_ms > 0 {
        builder = builder.ttl(Duration::from_millis(options.ttl_ms));
    }
    if options.idle_ms > 0 {
        builder = builder.idle(Duration::from_millis(options.idle_ms));
    }
    if options.max_size > 0 {
        builder = builder.max_size(options.max_size);
    }
    if options.max_memory > 0 {
        builder = builder.max_memory(options.max_memory);
    }
    // An `evict` without a limit would never have an effect, so it is refused.
    let has_limits = options.max_size > 0 || options.max_memory > 0;
    let mut all = larder_evict::ALL.into_iter();
    let evict = match all.find(|policy| *policy as c_int == options.evict) {
        Some(larder_evict::None) => return Ok(builder),
        Some(_) if !has_limits => {
            return bad("evict is for a table with max_size or max_memory".to_owned())
        }
        Some(larder_evict::Lru) => Evict::Lru,
        Some(larder_evict::TinyLfu) => Evict::TinyLfu,
        Some(larder_evict::Sieve) => Evict::Sieve,
        None => {
            return bad(format!(
                "evict is {}, which is no larder_evict",
                options.evict
            ))
        }
    };
    Ok(builder.evict(evict))
}
