//! Plans: which keys of a table a program can fit at all.
//!
//! Each clause is limited on its own (see `limits`); the plan is what covers all of them. It may be
//! wider than needed and is never narrower: whoever follows it still runs the program on every
//! object that it finds.

use crate::{
    bound,
    limits::{self, Edge, Limit},
    program::{Clause, Program},
    wire,
};
use larder_term::{order_key, Term, TermRef};
use std::borrow::Cow;
use std::ops::{Bound, RangeBounds};

/// How a table finds its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyOrder {
    /// By hash, and keys are the same if they are identical.
    Hash,
    /// By order, and keys are the same if they are equal (1 and 1.0).
    Ordered,
}

/// Where to look for objects that a program fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// Nowhere: no object fits.
    Nothing,
    /// Under these keys; each once, and for an ordered table in ascending order.
    Keys(Vec<Term>),
    /// In a range of order keys (for ordered tables only). At least one end is bounded, and the
    /// range is not empty.
    Range {
        /// From where.
        low: Bound<Vec<u8>>,
        /// To where.
        high: Bound<Vec<u8>>,
    },
    /// Everywhere.
    Full,
}

impl Plan {
    /// Whether who follows this plan, made for this order, comes upon an object with this key. For
    /// a key that a program fits it is always true.
    ///
    /// # Complexity
    /// O(n) in the plan and the key.
    pub fn covers(&self, key: TermRef<'_>, order: KeyOrder) -> bool {
        match self {
            Plan::Full => true,
            Plan::Nothing => false,
            Plan::Keys(keys) => keys.iter().any(|known| match order {
                KeyOrder::Hash => known.as_ref().identical(key),
                KeyOrder::Ordered => known.as_ref().eq_term(key),
            }),
            Plan::Range { low, high } => {
                let mut bytes = Vec::new();
                order_key::encode(key, &mut bytes);
                RangeBounds::<Vec<u8>>::contains(&(low.as_ref(), high.as_ref()), &bytes)
            }
        }
    }
}

impl Program {
    /// As [`Program::plan`]. What is asked first is kept: a program mostly serves one table, or
    /// several of one kind.
    ///
    /// # Complexity
    /// As `plan`; O(1) when asked the same again.
    pub fn kept_plan(&self, keypos: usize, order: KeyOrder) -> Cow<'_, Plan> {
        let (pos, by, plan) = self
            .planned
            .get_or_init(|| (keypos, order, self.plan(keypos, order)));
        if (*pos, *by) == (keypos, order) {
            Cow::Borrowed(plan)
        } else {
            Cow::Owned(self.plan(keypos, order))
        }
    }

    /// The keys at position `keypos` (from 1) that objects which fit can have.
    ///
    /// # Complexity
    /// O(n log n) in the specification.
    pub fn plan(&self, keypos: usize, order: KeyOrder) -> Plan {
        let source = self.source();
        let mut keys = Vec::new();
        let mut range: Option<(Edge, Edge)> = None;
        let names_key = |clause: &Clause| limits::names_key(&source, clause, keypos);
        let exact = bound::exact_map_keys() && self.clauses.iter().all(names_key);
        for clause in &self.clauses {
            match limits::of_clause(self, &source, clause, (keypos, exact), order) {
                Limit::Nothing => {}
                Limit::Keys(found) => keys.extend(found),
                Limit::Range(low, high) => {
                    range = Some(match range {
                        None => (low, high),
                        Some((l, h)) => (limits::lower(l, low), limits::higher(h, high)),
                    });
                }
                Limit::Full => return Plan::Full,
            }
        }
        match (range, order) {
            (None, _) if keys.is_empty() => Plan::Nothing,
            (None, _) => Plan::Keys(distinct(keys, order)),
            (Some(_), KeyOrder::Hash) => Plan::Full,
            (Some((mut low, mut high)), KeyOrder::Ordered) => {
                for key in &keys {
                    let mut bytes = Vec::new();
                    order_key::encode(key.as_ref(), &mut bytes);
                    low = limits::lower(low, Bound::Included(bytes.clone()));
                    high = limits::higher(high, Bound::Included(bytes));
                }
                match (&low, &high) {
                    (Bound::Unbounded, Bound::Unbounded) => Plan::Full,
                    _ => Plan::Range { low, high },
                }
            }
        }
    }
}

/// Each key once, in order.
fn distinct(mut keys: Vec<Term>, order: KeyOrder) -> Vec<Term> {
    match order {
        KeyOrder::Ordered => {
            keys.sort_by(|a, b| a.as_ref().cmp_term(b.as_ref()));
            keys.dedup_by(|a, b| a.as_ref().eq_term(b.as_ref()));
        }
        // Integers and atoms are identical exactly when their bytes are.
        KeyOrder::Hash if keys.iter().all(|key| wire::is_integer_or_atom(key.bytes())) => {
            keys.sort_unstable_by(|a, b| a.bytes().cmp(b.bytes()));
            keys.dedup_by(|a, b| a.bytes() == b.bytes());
        }
        KeyOrder::Hash => {
            keys.sort_by(|a, b| a.as_ref().cmp_exact(b.as_ref()));
            keys.dedup_by(|a, b| a.as_ref().identical(b.as_ref()));
        }
    }
    keys
}
