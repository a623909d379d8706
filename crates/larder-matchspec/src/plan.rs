//! Plans: which keys of a table a program can match at all.
//!
//! Each clause is limited separately (see `limits`), and the plan covers the limits of all clauses.
//! A plan may be wider than necessary, but never narrower. So a scan that follows it still runs the
//! program on every object that it finds.

use crate::{
    clause::Clause,
    demand::Demands,
    func::Func,
    head::HeadForm,
    ir::Node,
    key_bounds::{self, KeyBound},
    limits::{self, DemandingClause, Expression, KeyAccess, Limit, Subject},
    program::Program,
};
use larder_term::{order_key, Term, TermRef};
use std::ops::{Bound, RangeBounds};

/// Where to look for objects that a program matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// Nowhere: no object matches.
    Nothing,
    /// Under these keys, of which several may be the same key of the table. There is at least one.
    Keys(Vec<Term>),
    /// In a range of order keys, which only ordered tables have. At least one end is bounded, and
    /// the range is not empty.
    Range {
        /// The lower end.
        low: Bound<Vec<u8>>,
        /// The upper end.
        high: Bound<Vec<u8>>,
    },
    /// Everywhere.
    AllKeys,
}

impl Plan {
    /// Whether a scan that follows this plan finds an object with this key. The plan must have been
    /// made for the same access. Always true for the key of an object that the program matches.
    ///
    /// # Complexity
    /// O(n) in the plan and the key.
    pub fn covers(&self, key: TermRef<'_>, access: KeyAccess) -> bool {
        match self {
            Plan::AllKeys => true,
            Plan::Nothing => false,
            // A key of an ordered_set stands for all terms that are equal to it.
            Plan::Keys(keys) => keys.iter().any(|known| match access {
                KeyAccess::Hash => known.as_ref().identical(key),
                KeyAccess::Ordered => known.as_ref().eq_term(key),
            }),
            Plan::Range { low, high } => {
                // A range is one of order keys.
                let mut bytes = Vec::new();
                order_key::encode(key, &mut bytes);
                RangeBounds::<Vec<u8>>::contains(&(low.as_ref(), high.as_ref()), &bytes)
            }
        }
    }
}

impl Program {
    /// The key at position `keypos` (counted from 1) that every matching object has, if the
    /// specification has one clause, and its head binds the key. An object with this key need not
    /// match.
    ///
    /// # Complexity
    /// That of `plan`, but independent of the facts about the key.
    pub fn bound_key(&self, keypos: usize) -> Option<TermRef<'_>> {
        let mut others = None;
        match &self.code.demands(keypos, &mut others).each[..] {
            [Some(demand)] => demand.constant.map(|key| self.constants().term(key)),
            _ => None,
        }
    }

    /// Whether the heads alone say which keys, at position `keypos` (counted from 1), matching
    /// objects have; for an ordered table, whether they name one key. A plan may have keys that
    /// only guards name: `{'=:=', '$1', 7}`.
    ///
    /// # Complexity
    /// That of `plan`.
    pub fn heads_name_keys(&self, keypos: usize, access: KeyAccess) -> bool {
        let mut others = None;
        let Some(keys) = &self.code.demands(keypos, &mut others).head_constants else {
            return false;
        };
        let mut keys = keys.iter().map(|&key| self.constants().term(key));
        match access {
            KeyAccess::Hash => true,
            KeyAccess::Ordered => keys
                .next()
                .is_none_or(|first| keys.all(|key| key.eq_term(first))),
        }
    }

    /// The plan for an element that isn't the key: what matching objects can have at a position,
    /// counted from 1. `AllKeys` if an object that is too short for the position may match.
    ///
    /// # Complexity
    /// That of `plan`.
    pub fn plan_of_element(&self, position: usize, access: KeyAccess) -> Plan {
        // An object that is too short has no such element, and the plan would miss it.
        let is_short = |clause: &Clause| match clause.head.form {
            HeadForm::Tuple { arity, .. } => arity < position,
            HeadForm::Any | HeadForm::Other => false,
        };
        if self.code.clauses.iter().any(is_short) {
            return Plan::AllKeys;
        }
        let demands = self.code.demands_of_element(position);
        self.plan_of(&demands, Subject::Element, access)
    }

    /// The plan for an expression: which values it can have for matching objects.
    ///
    /// The expression is the left side of the first guard of `other`, which must be a comparison;
    /// otherwise the plan is `AllKeys`. It is limited by guards of this program that compare the
    /// same expression with a constant. In these, a variable of the head may stand for the object
    /// or an element.
    ///
    /// # Complexity
    /// That of `plan`, times the size of the expression for each guard.
    pub fn plan_of_expression(&self, other: &Program, access: KeyAccess) -> Plan {
        // The indexed expression was compiled as a guard, so that it is a node that can be
        // compared.
        let guard = other
            .code
            .clauses
            .first()
            .and_then(|clause| clause.guards.first());
        let Some(Node::Call(Func::Cmp(_), sides)) = guard.map(|&guard| other.code.ir.node(guard))
        else {
            return Plan::AllKeys;
        };
        let expression = Expression {
            code: &other.code,
            constants: other.constants(),
            id: other.code.ir.of(sides)[0],
        };
        let demands = self.code.demands_of_guards();
        self.plan_of(&demands, Subject::Expression(expression), access)
    }

    /// The keys at position `keypos` (counted from 1) that matching objects can have.
    ///
    /// # Complexity
    /// O(n log n) in the specification the first time. After that, linear in the constants and the
    /// facts about the key.
    pub fn plan(&self, keypos: usize, access: KeyAccess) -> Plan {
        let mut others = None;
        let demands = self.code.demands(keypos, &mut others);
        self.plan_of(demands, Subject::Element, access)
    }

    /// The plan that covers the limits of all clauses.
    fn plan_of(&self, demands: &Demands, subject: Subject<'_>, access: KeyAccess) -> Plan {
        let (code, constants) = (&*self.code, self.constants());
        // Collect the keys of all clauses, and the smallest range that covers all ranges.
        let mut keys = Vec::new();
        let mut range: Option<(KeyBound, KeyBound)> = None;
        for index in 0..demands.each.len() {
            let clause = DemandingClause {
                code,
                constants,
                demands,
                index,
            };
            // A clause that matches nothing adds nothing. One that may match anything ends the
            // search.
            match limits::of_clause(clause, subject, access) {
                Limit::Nothing => {}
                Limit::Keys(found) => keys.extend(found),
                Limit::Range(low, high) => {
                    range = Some(match range {
                        None => (low, high),
                        Some((l, h)) => (key_bounds::lower(l, low), key_bounds::higher(h, high)),
                    });
                }
                Limit::AllKeys => return Plan::AllKeys,
            }
        }
        match (range, access) {
            (None, _) if keys.is_empty() => Plan::Nothing,
            (None, _) => Plan::Keys(keys),
            // A table without an order can't scan a range.
            (Some(_), KeyAccess::Hash) => Plan::AllKeys,
            // Some clauses have keys, others a range: extend the range to the keys.
            (Some((mut low, mut high)), KeyAccess::Ordered) => {
                for key in &keys {
                    let mut bytes = Vec::new();
                    order_key::encode(key.as_ref(), &mut bytes);
                    low = key_bounds::lower(low, Bound::Included(bytes.clone()));
                    high = key_bounds::higher(high, Bound::Included(bytes));
                }
                match (&low, &high) {
                    (Bound::Unbounded, Bound::Unbounded) => Plan::AllKeys,
                    _ => Plan::Range { low, high },
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_term::Term;

    fn bound(spec: &str, keypos: usize) -> Option<String> {
        let spec: Term = spec.parse().unwrap();
        let program = Program::compile(spec.as_ref()).unwrap();
        program.bound_key(keypos).map(|key| key.to_string())
    }

    #[test]
    fn keys_are_found_where_they_are_named() {
        for (spec, keypos, key) in [
            ("[{{7,'$1'},[],['$1']}]", 1, "7"),
            (
                "[{{'$1',{a,[b|c]},x},[{is_atom,'$1'}],['$_']}]",
                2,
                "{a,[b|c]}",
            ),
            ("[{{-0.0,[]},[],['$_']}]", 1, "-0.0"),
            ("[{{7,[]},[],['$_']}]", 2, "[]"),
        ] {
            assert_eq!(bound(spec, keypos).as_deref(), Some(key), "{spec}");
        }
    }

    #[test]
    fn heads_name_keys_or_guards_do() {
        // The specification, and whether its heads name keys of a set and of an ordered_set.
        for (spec, set, ordered) in [
            ("[{{7,'_'},[],['$_']},{{8,'_'},[],['$_']}]", true, false),
            ("[{{7,'_'},[],['$_']},{{7.0,'_'},[],['$_']}]", true, true),
            (
                "[{{7,'_'},[],['$_']},{a,[],['$_']},{{},[],['$_']}]",
                true,
                true,
            ),
            (
                "[{{7,'_'},[],['$_']},{{8,'_'},[false],['$_']}]",
                true,
                false,
            ),
            ("[{{7,'_'},[],['$_']},{'_',[false],['$_']}]", false, false),
            (
                "[{{7,'_'},[],['$_']},{{'$1','_'},[false],['$_']}]",
                false,
                false,
            ),
            ("[{{'$1','_'},[{'=:=','$1',7}],['$_']}]", false, false),
        ] {
            let term: Term = spec.parse().unwrap();
            let program = Program::compile(term.as_ref()).unwrap();
            for (access, named) in [(KeyAccess::Hash, set), (KeyAccess::Ordered, ordered)] {
                assert_eq!(program.heads_name_keys(1, access), named, "{spec}");
                let found = matches!(program.plan(1, access), Plan::Keys(_));
                assert!(found, "{spec}");
            }
        }
    }

    #[test]
    fn what_names_no_key_has_none() {
        for (spec, keypos) in [
            ("[{{'$1',7},[],['$1']}]", 1),
            ("[{{{a,'_'},7},[],['$_']}]", 1),
            ("[{{#{a => 1},7},[],['$_']}]", 1),
            ("[{{7},[],['$_']}]", 2),
            ("[{'_',[],['$_']}]", 1),
            ("[{{7},[],['$_']},{{8},[],['$_']}]", 1),
        ] {
            assert_eq!(bound(spec, keypos), None, "{spec}");
        }
    }
}
