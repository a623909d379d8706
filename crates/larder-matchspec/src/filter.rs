//! Filters: the first test of a program, on many stored objects at once.
//!
//! Most scans find few of the objects that they read. To run a program on an object takes several
//! times as long as its first test: the object is opened, a row is made of it, and clauses and
//! tests are looped over. So a scan first lets a filter look at all objects of a batch. It decides
//! once per batch what kind of test it is, and reads the element's bytes where they lie. The
//! program then runs on the objects that pass, from the second test on.
//!
//! That operators work on batches and pass on which rows remain is the way of MonetDB/X100 (Boncz,
//! Zukowski, Nes, CIDR 2005, section 4).

use crate::{
    constant::Constants,
    head::{CompiledHead, HeadForm},
    program::Program,
    test::{Condition, Test},
    wire,
};
use larder_term::object::{groups, UnopenedObject};

/// What a filter says of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The program doesn't match it.
    Rejected,
    /// The first test holds. The program may match it.
    Passed,
    /// Not looked at: the object is compressed, or its key isn't stored as a term.
    Unknown,
}

/// The filter of a program for the objects of one table.
#[derive(Debug)]
pub struct Filter<'p> {
    test: &'p Test,
    head: &'p CompiledHead,
    constants: Constants<'p>,
    /// The arities of the objects that can match, from the least to the greatest.
    least: usize,
    most: usize,
    /// The number of the test's element among those beside the key, from 0; `None` for the key.
    beside_key: Option<usize>,
}

impl Program {
    /// The filter for objects with the key at position `keypos` (counted from 1). `None` if the
    /// program has several clauses, or has no test, or one that a filter doesn't decide.
    ///
    /// # Complexity
    /// O(1).
    #[inline]
    pub fn filter(&self, keypos: usize) -> Option<Filter<'_>> {
        let [clause] = &self.code.clauses[..] else {
            return None;
        };
        let test = clause.tests.first().filter(|test| test.is_single())?;
        let (least, most) = match clause.head.form {
            HeadForm::Tuple { arity, .. } => (arity, arity),
            _ => (clause.min_arity.max(1), usize::MAX),
        };
        let beside_key = match test.position == keypos {
            true => None,
            false => Some(test.position - 1 - usize::from(test.position > keypos)),
        };
        // Far elements are found over groups of elements, which a row remembers.
        let is_near = beside_key.is_none_or(|number| number < groups::GROUP);
        is_near.then(|| Filter {
            test,
            head: &clause.head,
            constants: self.constants(),
            least,
            most,
            beside_key,
        })
    }
}

impl Filter<'_> {
    /// Looks at objects, and calls `verdict` for each, in order, with its number.
    ///
    /// # Complexity
    /// That of the first test, and of the elements in front of its element, for each object.
    #[inline(always)]
    pub fn judge<'v>(
        &self,
        objects: impl Iterator<Item = UnopenedObject<'v>>,
        mut verdict: impl FnMut(usize, UnopenedObject<'v>, Verdict),
    ) {
        // The condition is prepared here and not for each object.
        let condition = self.test.condition(&self.constants);
        let bytes = match condition {
            Condition::Bytes(constant, _) => self.constants.get(constant),
            _ => &[],
        };
        let holds = |run: &[u8]| match condition {
            Condition::Int(cmp, n) => Test::compares_to_int(cmp, run, n),
            Condition::Bytes(_, is) => wire::begins(run, bytes) == is,
            _ => self.holds(run),
        };
        for (index, object) in objects.enumerate() {
            let is = match self.run(object) {
                Ok(run) if holds(run) => Verdict::Passed,
                Ok(_) => Verdict::Rejected,
                Err(verdict) => verdict,
            };
            verdict(index, object, is);
        }
    }

    /// Any condition.
    #[inline(never)]
    fn holds(&self, run: &[u8]) -> bool {
        self.test.holds(self.head, run, &self.constants)
    }

    /// The bytes of an object from the test's element on, or what is known without them.
    #[inline(always)]
    fn run<'v>(&self, object: UnopenedObject<'v>) -> Result<&'v [u8], Verdict> {
        let (arity, others) = object.beside_key().ok_or(Verdict::Unknown)?;
        if arity < self.least || arity > self.most {
            return Err(Verdict::Rejected);
        }
        match self.beside_key {
            Some(number) => Ok((0..number).fold(others, |from, _| from.next()).term()),
            None => object.key().ok_or(Verdict::Unknown),
        }
    }
}
