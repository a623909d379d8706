//! Filters: the first test of a program, on many stored objects at once.
//!
//! Most scans find few of the objects that they read. To run a program on an object takes several
//! times as long as its first test: the object is opened, a row is made of it, and clauses and
//! tests are looped over. So a scan first lets a filter look at all objects of a batch. It reads
//! the element's bytes where they lie. The program then runs on the objects that pass, from the
//! second test on.
//!
//! A batch is looked at as a whole, whatever the budget of a slice. So a filter reads at most some
//! kilobytes of an object: no element out of line, no longer key, and no large binary.
//!
//! That operators work on batches and pass on which rows remain is the way of MonetDB/X100 (Boncz,
//! Zukowski, Nes, CIDR 2005, section 4).

use crate::{
    clause::Clause,
    constant::Constants,
    head::{CompiledHead, HeadForm},
    limits::KeyAccess,
    test::{Condition, Test},
    wire,
};
use larder_term::object::{groups, UnopenedObject, LONGEST_IN_LINE};

/// What a filter says of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The program doesn't match it.
    Rejected,
    /// The first test holds. The program may match it.
    Passed,
    /// Not looked at: the object is compressed, has more than 1,023 elements, or a key that isn't
    /// stored as a term; or much would have to be read.
    Unknown,
}

/// The filter of a program for the objects of one table.
#[derive(Debug)]
pub struct Filter<'p> {
    head: &'p CompiledHead,
    /// The first test, and where its element is. `None` if the arity alone is tested.
    test: Option<(&'p Test, Place)>,
    constants: Constants<'p>,
    /// Whether the test never reads what a handle leads to.
    is_bounded: bool,
    /// The arities of the objects that can match, from the least to the greatest.
    least: usize,
    most: usize,
}

/// Where an element is stored.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// It is the key.
    Key,
    /// The number of the element among those beside the key, from 0.
    Beside(usize),
}

impl<'p> Filter<'p> {
    /// The filter of a program with one clause, for objects with the key at position `keypos`.
    /// `None` if it has a first test that a filter doesn't decide.
    #[inline]
    pub(crate) fn of(
        clause: &'p Clause,
        constants: Constants<'p>,
        keypos: usize,
        access: KeyAccess,
    ) -> Option<Self> {
        let test = match clause.tests.first() {
            None => None,
            Some(test) if !test.is_single() => return None,
            Some(test) if test.position == keypos => match access {
                KeyAccess::Hash => Some((test, Place::Key)),
                // The key would have to be decoded. Its tests limit the range that is scanned.
                KeyAccess::Ordered => return None,
            },
            Some(test) => {
                let number = test.position - 1 - usize::from(test.position > keypos);
                // Far elements are found over groups of elements, which a row remembers.
                if number >= groups::GROUP {
                    return None;
                }
                Some((test, Place::Beside(number)))
            }
        };
        // A head that is a tuple matches objects of its own arity only. Any other head needs as
        // many elements as its tests look at.
        let (least, most) = match clause.head.form {
            HeadForm::Tuple { arity, .. } => (arity, arity),
            _ => (clause.min_arity, usize::MAX),
        };
        // These conditions are decided on the element's own bytes. Others may compare whole
        // terms, and so follow handles.
        let is_bounded = test.is_none_or(|(test, _)| {
            use Condition::*;
            let condition = test.condition(&constants);
            matches!(
                condition,
                Int(..) | Bytes(..) | Float(..) | Type(_) | Record(..) | True
            )
        });
        Some(Filter {
            head: &clause.head,
            test,
            is_bounded,
            constants,
            least,
            most,
        })
    }
}

impl Filter<'_> {
    /// Looks at objects, and calls `verdict` for each, in order, with its number.
    ///
    /// # Complexity
    /// That of the first test, and of the elements in front of its element, for each object.
    #[inline]
    pub fn judge<'v>(
        &self,
        objects: impl Iterator<Item = UnopenedObject<'v>>,
        mut verdict: impl FnMut(usize, UnopenedObject<'v>, Verdict),
    ) {
        // The condition is prepared here and not for each object.
        let condition = self.test.map(|(test, _)| test.condition(&self.constants));
        let bytes = match condition {
            Some(Condition::Bytes(constant, _)) => self.constants.get(constant),
            _ => &[],
        };
        let holds = |run: &[u8]| match condition {
            Some(Condition::Int(cmp, n)) => Test::compares_to_int(cmp, run, n),
            Some(Condition::Bytes(_, is)) => wire::begins(run, bytes) == is,
            _ => self.holds(run),
        };
        for (index, object) in objects.enumerate() {
            // The verdict may be known without the element.
            let is = match self.element_bytes(object) {
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
        self.test
            .is_none_or(|(test, _)| test.holds(self.head, run, &self.constants))
    }

    /// The bytes of an object from the test's element on.
    ///
    /// # Errors
    /// The verdict, if it is known without them.
    #[inline]
    fn element_bytes<'v>(&self, object: UnopenedObject<'v>) -> Result<&'v [u8], Verdict> {
        // The object is compressed, or its value has the exact key.
        let (arity, others) = object.beside_key().ok_or(Verdict::Unknown)?;
        if arity < self.least || arity > self.most {
            return Err(Verdict::Rejected);
        }
        // The test might read a large binary.
        if !self.is_bounded && object.has_handles() {
            return Err(Verdict::Unknown);
        }
        match self.test {
            // Pass the elements before it, which are fewer than those of a group.
            Some((_, Place::Beside(number))) => {
                let from = (0..number).fold(others, |from, _| from.next());
                match from.is_out_of_line() {
                    true => Err(Verdict::Unknown),
                    false => Ok(from.term()),
                }
            }
            Some((_, Place::Key)) => {
                let key = object.key().filter(|key| key.len() <= LONGEST_IN_LINE);
                key.ok_or(Verdict::Unknown)
            }
            // The arity is all that is tested.
            None => Err(Verdict::Passed),
        }
    }
}
