//! How tables are made: a structure that may grow.
//!
//! A program says how many bytes its `larder_options` has. Fields are only ever added, at the end,
//! and zero stands for what a library without the field does. So a program works with a newer
//! library; and with an older one, unless it asks for what that one has not, which is told.

use crate::status::{Failure, Status};
use crate::terms::text_at;
use ::larder::api::Builder;
use ::larder::Evict;
use std::ffi::{c_char, c_int};
use std::mem::{offset_of, size_of, MaybeUninit};
use std::time::Duration;

/// How many rows a key may have, and in what order keys come.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum larder_type {
    /// One row a key, in no order.
    Set = 0,
    /// One row a key, in the order of keys; 1 and 1.0 are one key.
    OrderedSet = 1,
    /// Any number of different rows a key, in order of arrival.
    Bag = 2,
    /// Any number of rows a key, the same one several times too.
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

/// What becomes of a table that has as much as it may have.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum larder_evict {
    /// Writes that need room are refused: `LARDER_FULL`.
    None = 0,
    /// Of some rows that are looked at, those go that were read or written the longest ago.
    Lru = 1,
    /// Of some rows that are looked at, those go that were read or written the least often lately;
    /// or a new one, if it was not more often.
    TinyLfu = 2,
}

impl larder_evict {
    const ALL: [larder_evict; 3] = [larder_evict::None, larder_evict::Lru, larder_evict::TinyLfu];
}

/// How a table is made. Zeroed but for its size, it makes a set with the key in front.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct larder_options {
    /// `sizeof(larder_options)`: by it the library knows which fields the program has. Later
    /// versions of the library may add some at the end.
    pub size: usize,
    /// A `larder_type`.
    pub kind: c_int,
    /// A `larder_evict`, for a table that has `max_size` or `max_memory`.
    pub evict: c_int,
    /// The position of the key in each row, from 1; 0 stands for 1.
    pub keypos: usize,
    /// Whether `larder_table_find` finds the table; no other may have its name.
    pub named: bool,
    /// Whether rows are kept compressed: less memory, more work for each access.
    pub compressed: bool,
    /// Whether rows are counted in many places: quicker for many writers, slower to ask.
    pub decentralized_counters: bool,
    /// The structure to build on, with its options: `"btree"`, `"catree(over=btree,m=16)"`; null
    /// for the default, which is best for nearly everything.
    pub structure: *const c_char,
    /// For how many milliseconds a row lives after it was written, unless `larder_insert_for` says
    /// otherwise; 0: for ever. For sets and ordered_sets, as all that follows.
    pub ttl_ms: u64,
    /// For how many milliseconds a row lives, at least, after it was written or looked up by its
    /// key; 0: for ever.
    pub idle_ms: u64,
    /// How many rows the table has at most; 0: any number.
    pub max_size: usize,
    /// How many bytes its rows take at most; 0: any number.
    pub max_memory: usize,
}

/// What the first version with a size had.
const LEAST: usize = offset_of!(larder_options, max_memory) + size_of::<usize>();

/// More than any version will have: a larger size was never set.
const MOST: usize = 4096;

/// Copies what a program has of the options.
///
/// # Safety
/// `options` has as many bytes as its size says.
unsafe fn copied(options: *const larder_options) -> Result<larder_options, Failure> {
    let bad = |text| Err(Failure::new(Status::BadOption, text));
    // SAFETY: the size is the first field of every version.
    let size = unsafe { options.cast::<usize>().read() };
    if !(LEAST..=MOST).contains(&size) {
        return bad(format!(
            "options.size is {size}: it has to be sizeof(larder_options)"
        ));
    }
    let known = size_of::<larder_options>();
    let bytes = options.cast::<u8>();
    // SAFETY: the caller has `size` bytes, which is more than `known` in this case.
    let newer = (known..size).map(|at| unsafe { bytes.add(at).read() });
    if newer.into_iter().any(|byte| byte != 0) {
        let version = env!("CARGO_PKG_VERSION");
        return bad(format!(
            "options has a field that is not zero and that Larder {version} does not know"
        ));
    }
    let mut own = MaybeUninit::<larder_options>::zeroed();
    // SAFETY: the caller has `size` bytes, and so many or more are here. The fields that they
    // don't reach are zero, which is a value of each.
    unsafe {
        bytes.copy_to_nonoverlapping(own.as_mut_ptr().cast(), size.min(known));
        Ok(own.assume_init())
    }
}

/// Puts the options into a builder.
///
/// # Safety
/// `options` has as many bytes as its size says; `structure` is null or ends with a NUL.
pub(crate) unsafe fn apply(
    options: *const larder_options,
    builder: Builder,
) -> Result<Builder, Failure> {
    // SAFETY: as the caller says.
    let options = unsafe { copied(options) }?;
    let mut all = larder_type::ALL.into_iter();
    let mut builder = match all.find(|own| *own as c_int == options.kind) {
        Some(larder_type::Set) => builder.set(),
        Some(larder_type::OrderedSet) => builder.ordered_set(),
        Some(larder_type::Bag) => builder.bag(),
        Some(larder_type::DuplicateBag) => builder.duplicate_bag(),
        None => {
            let text = format!("there is no kind of table {}", options.kind);
            return Err(Failure::new(Status::BadOption, text));
        }
    };
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
        // SAFETY: as the caller says.
        builder = builder.structure_text(unsafe { text_at(options.structure, "structure") }?);
    }
    bounded(&options, builder)
}

/// Puts the bounds into a builder: a table that is asked for none pays for none.
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
    let has_limits = options.max_size > 0 || options.max_memory > 0;
    let mut all = larder_evict::ALL.into_iter();
    let evict = match all.find(|own| *own as c_int == options.evict) {
        Some(larder_evict::None) => return Ok(builder),
        Some(_) if !has_limits => {
            return bad("evict is for a table with max_size or max_memory".to_owned())
        }
        Some(larder_evict::Lru) => Evict::Lru,
        Some(larder_evict::TinyLfu) => Evict::TinyLfu,
        None => {
            return bad(format!(
                "evict is {}, which is no larder_evict",
                options.evict
            ))
        }
    };
    Ok(builder.evict(evict))
}
