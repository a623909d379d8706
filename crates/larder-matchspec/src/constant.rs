//! Constants: terms that a program compares with, or builds terms of.
//!
//! Most constants are *arguments*. They aren't part of the code, and each call supplies its own
//! (`template` says which constants are arguments). The others are fixed, and are in the code's
//! pool.

use crate::{map_search::ConstantMap, raw, wire};
use larder_term::{Term, TermRef};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;

/// A range of bytes: of the pool, which begins with the template, or of a run's arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) from: usize,
    pub(crate) to: usize,
}

impl Span {
    pub(crate) fn range(self) -> Range<usize> {
        self.from..self.to
    }
}

/// Where a constant is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Constant {
    /// In the pool.
    Fixed(Span),
    /// Among the arguments, at this index.
    Argument(u32),
}

/// What is known about an argument at compile time. The compiler's choices depend on it alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// An integer of 64 bits.
    Int,
    /// A float.
    Float,
    /// An atom, or a binary of at most 64 bytes. No term with other bytes is equal to it.
    Plain,
    /// Any term.
    Other,
    /// A part of a head that contains a map, but no variable and no `'_'`. It matches more terms
    /// than itself.
    Closed,
}

/// The length of the longest binary of the class `Plain`, in bytes. Such a short binary has only
/// one encoding.
pub const LONGEST_PLAIN: usize = 64;

/// Where an argument's bytes are, and properties that are often needed.
#[derive(Debug, Clone, Copy)]
struct Argument {
    /// Its value, if it is an integer of 64 bits.
    int: i64,
    /// Where its bytes begin and end.
    from: u32,
    to: u32,
    is_int: bool,
    /// Its first byte, which differs from that of nearly all other terms.
    first: u8,
    /// Whether terms with other bytes may be identical to it.
    other_forms: bool,
}

/// The arguments of a program, in the order of the specification.
#[derive(Debug, Clone, Default)]
pub struct Arguments {
    /// The bytes of all arguments.
    bytes: SmallVec<[u8; 32]>,
    list: SmallVec<[Argument; 3]>,
    rare: Option<Box<RareArguments>>,
}

/// What some kinds of arguments need.
#[derive(Debug, Clone, Default)]
struct RareArguments {
    /// Terms that own the counts of the handles in the bytes.
    held: Vec<Term>,
    /// The arguments that are large maps.
    maps: Vec<(u32, Arc<ConstantMap>)>,
}

impl Arguments {
    /// No arguments.
    #[inline]
    pub(crate) fn new() -> Arguments {
        Arguments::default()
    }

    /// The number of arguments.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Adds an integer.
    #[inline]
    pub fn push_int(&mut self, n: i64) {
        let from = self.bytes.len();
        for &byte in wire::Short::int(n).bytes() {
            self.bytes.push(byte);
        }
        self.add(from, Some(n), false);
    }

    /// Adds a term.
    pub fn push(&mut self, term: TermRef<'_>) {
        let bytes = term.bytes();
        // Terms with handles have several encodings, so comparing their bytes isn't enough.
        let other_forms = wire::may_hold_handles(bytes);
        // The bytes alone don't keep the handles in them alive. A term of its own does.
        if other_forms && term.has_handles() {
            let rare = self.rare.get_or_insert_default();
            rare.held.push(Term::from(term));
        }
        if ConstantMap::is_for(bytes) {
            let map = (self.list.len() as u32, Arc::default());
            self.rare.get_or_insert_default().maps.push(map);
        }
        let from = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.add(from, wire::int(bytes), other_forms);
    }

    /// The number of their bytes.
    #[inline]
    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }

    #[inline]
    fn add(&mut self, from: usize, int: Option<i64>, other_forms: bool) {
        self.list.push(Argument {
            int: int.unwrap_or(0),
            from: from as u32,
            to: self.bytes.len() as u32,
            first: self.bytes[from],
            is_int: int.is_some(),
            other_forms,
        });
    }

    #[inline]
    fn bytes(&self, index: u32) -> &[u8] {
        let argument = &self.list[index as usize];
        &self.bytes[argument.from as usize..argument.to as usize]
    }
}

/// The constants of a pool that are large maps.
pub(crate) type LargeMaps = Vec<(Span, ConstantMap)>;

/// All constants of a running program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Constants<'a> {
    pool: &'a Vec<u8>,
    /// The large maps of the pool.
    maps: &'a LargeMaps,
    arguments: &'a Arguments,
}

impl<'a> Constants<'a> {
    /// The constants of a pool and of arguments.
    #[inline]
    pub(crate) fn of(
        pool: &'a Vec<u8>,
        maps: &'a LargeMaps,
        arguments: &'a Arguments,
    ) -> Constants<'a> {
        Constants {
            pool,
            maps,
            arguments,
        }
    }

    /// Bytes of the pool.
    #[inline]
    pub(crate) fn pool(&self, span: Span) -> &'a [u8] {
        &self.pool[span.range()]
    }

    /// The bytes of a constant.
    #[inline]
    pub(crate) fn get(&self, constant: Constant) -> &'a [u8] {
        match constant {
            Constant::Fixed(span) => &self.pool[span.range()],
            Constant::Argument(index) => self.arguments.bytes(index),
        }
    }

    /// Whether a run begins with a constant's bytes.
    #[inline]
    pub(crate) fn begins(&self, run: &[u8], constant: Constant) -> bool {
        match constant {
            // A fixed constant was compiled into the pool.
            Constant::Fixed(span) => wire::begins(run, &self.pool[span.range()]),
            Constant::Argument(index) => {
                let argument = &self.arguments.list[index as usize];
                // The first byte decides most comparisons, without a look at the argument's bytes.
                run.first() == Some(&argument.first)
                    && wire::begins(run, self.arguments.bytes(index))
            }
        }
    }

    /// The constant as a term.
    #[inline]
    pub(crate) fn term(&self, constant: Constant) -> TermRef<'a> {
        raw::whole(self.get(constant))
    }

    /// Whether terms with other bytes may be identical to a constant.
    #[inline]
    pub(crate) fn has_other_forms(&self, constant: Constant) -> bool {
        match constant {
            Constant::Fixed(span) => wire::may_hold_handles(&self.pool[span.range()]),
            Constant::Argument(index) => self.arguments.list[index as usize].other_forms,
        }
    }

    /// The constant that lies at these bytes, if there is one and it is a large map.
    pub(crate) fn map_at(&self, bytes: &[u8]) -> Option<&'a ConstantMap> {
        // Constants are passed on as references to their bytes, and never copied.
        let is_it = |constant| std::ptr::eq(self.get(constant), bytes);
        let mut fixed = self.maps.iter();
        let fixed = fixed.find(|(span, _)| is_it(Constant::Fixed(*span)));
        fixed.map(|(_, map)| map).or_else(|| {
            let mut maps = self.arguments.rare.as_ref()?.maps.iter();
            let map = maps.find(|(index, _)| is_it(Constant::Argument(*index)));
            map.map(|(_, map)| &**map)
        })
    }

    /// The argument as an integer, if it is one of 64 bits.
    #[inline]
    pub(crate) fn int(&self, index: u32) -> Option<i64> {
        let argument = &self.arguments.list[index as usize];
        argument.is_int.then_some(argument.int)
    }
}

impl Constant {
    /// The bytes of the constant, if it is fixed.
    pub(crate) fn fixed(self, pool: &[u8]) -> Option<&[u8]> {
        match self {
            Constant::Fixed(span) => Some(&pool[span.range()]),
            Constant::Argument(_) => None,
        }
    }
}
