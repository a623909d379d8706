//! Matching a head against a row, step by step (see `head`).

use crate::{
    closed,
    head::{CompiledHead, HeadForm, Step},
    machine::Machine,
    map_search::{MapKey, UnorderedMap, LARGEST_IN_ORDER},
    raw,
    value::{Run, Val, NIL},
    wire::{self, Head},
};

impl<'a> Machine<'a, '_> {
    /// Whether the row matches. If so, the variables that are read have their values.
    #[inline]
    pub(crate) fn matches(&mut self, head: &'a CompiledHead) -> bool {
        // State of an earlier clause is of no use.
        self.frames.clear();
        self.maps.clear();
        match &head.form {
            HeadForm::Any => {
                if let Some(slot) = head.whole {
                    self.vars.set(slot, Val::Object);
                }
                true
            }
            HeadForm::Other => self
                .row
                .whole()
                .is_some_and(|whole| self.steps(&head.steps, whole).is_some()),
            // The tests have checked the arity.
            // Each element is matched by its own steps. Those that were tests have none.
            HeadForm::Tuple { elements, .. } => elements.iter().all(|element| {
                let run = self.row.run(element.position);
                self.steps(&head.steps[element.steps.clone()], run)
                    .is_some()
            }),
        }
    }

    /// Runs the steps from the beginning of a run. Returns the rest of the run, if all steps match.
    fn steps(&mut self, steps: &'a [Step], run: &'a [u8]) -> Option<&'a [u8]> {
        let mut run = run;
        for step in steps {
            run = self.step(*step, run)?;
        }
        Some(run)
    }

    #[inline]
    fn step(&mut self, step: Step, run: &'a [u8]) -> Option<&'a [u8]> {
        match step {
            step if step.is_plain() => step.plain(run, &self.constants, |slot, term| {
                self.vars.set(slot, Val::Term(term));
            }),
            Step::EqTerm(constant) => {
                // Equal bytes are the same term. Different ones may be, if the term has several
                // forms.
                let wanted = self.constants.get(constant);
                run.strip_prefix(wanted).or_else(|| {
                    let same = self.constants.has_other_forms(constant) && raw::begins(run, wanted);
                    same.then(|| wire::split(run).1)
                })
            }
            other => self.rare_step(other, run),
        }
    }

    fn rare_step(&mut self, step: Step, run: &'a [u8]) -> Option<&'a [u8]> {
        // These steps are less frequent, and kept out of the inlined loop.
        match step {
            // The variable was bound earlier, so the term must be its value.
            Step::Same(slot) => {
                let (term, left) = wire::split(run);
                self.has_value(slot, Val::Term(term)).then_some(left)
            }
            // A container must have as many parts. Their own steps follow.
            Step::List(count) => match wire::open(run) {
                (Head::List(n), at) if n == count as usize => Some(&run[at..]),
                _ => None,
            },
            Step::Improper(count) => match wire::open(run) {
                (Head::Improper(n), at) if n == count as usize => Some(&run[at..]),
                _ => None,
            },
            Step::OpenList(count) => {
                let (n, proper, at) = match wire::open(run) {
                    (Head::List(n), at) => (n, true, at),
                    (Head::Improper(n), at) => (n, false, at),
                    _ => return None,
                };
                // A list with a loose tail must have at least as many elements as the pattern.
                self.frames.push((n.checked_sub(count as usize)?, proper));
                Some(&run[at..])
            }
            // The pattern is walked over together with the term.
            Step::Closed(pattern) => closed::strip(run, self.constants.get(pattern)),
            // The elements that the steps since `OpenList` have left, and the tail.
            Step::RestSkip => self.rest(run).map(|(_, left)| left),
            Step::RestBind(slot) => {
                let (value, left) = self.rest(run)?;
                self.vars.set(slot, value);
                Some(left)
            }
            Step::RestEq(constant) => {
                let (value, left) = self.rest(run)?;
                let (wanted, value) = (self.constants.get(constant), self.flat(value));
                let same = self.with(value, |value| raw::begins(value.bytes(), wanted));
                same.then_some(left)
            }
            Step::RestSame(slot) => {
                let (value, left) = self.rest(run)?;
                self.has_value(slot, value).then_some(left)
            }
            _ => self.map_step(step, run),
        }
    }

    fn map_step(&mut self, step: Step, run: &'a [u8]) -> Option<&'a [u8]> {
        match step {
            Step::OpenMap(in_order) => match wire::open(run) {
                (Head::Map(n), at) => {
                    // A large map isn't in the order of its keys. Its beginning is remembered, and
                    // each key searched from there.
                    let in_order = in_order && n <= LARGEST_IN_ORDER;
                    self.frames.push((n, in_order));
                    if !in_order {
                        self.maps.push(UnorderedMap::new(&run[at..], n));
                    }
                    Some(&run[at..])
                }
                _ => None,
            },
            // The keys of small maps are in order, so a key that was passed isn't searched for
            // again. Keys of large maps, and arguments, may have been passed.
            Step::Key(key) => {
                let wanted = MapKey::new(self.constants.get(key));
                let (left, in_order) = self.frames.last_mut()?;
                match in_order {
                    true => wanted.find(run, left),
                    false => self.maps.last_mut()?.find(&wanted, run, left),
                }
            }
            Step::CloseMap => {
                // The remaining pairs of the map have no demands.
                let (left, in_order) = self.frames.pop()?;
                if !in_order {
                    self.maps.pop();
                }
                Some(wire::skip_terms(run, 2 * left))
            }
            _ => None,
        }
    }

    /// The rest of the open list, which begins here, and what follows the list.
    fn rest(&mut self, run: &'a [u8]) -> Option<(Val<'a>, &'a [u8])> {
        let (count, proper) = self.frames.pop()?;
        // The rest of the list is a run of its own, which needs no copy.
        let left = wire::skip_terms(run, count + usize::from(!proper));
        let body = &run[..run.len() - left.len()];
        // Without elements, the rest is `[]`, or the tail of an improper list.
        let value = match (count, proper) {
            (0, true) => Val::Term(NIL),
            (0, false) => Val::Term(body),
            _ => Val::Rest {
                count: u32::try_from(count).ok()?,
                proper,
                run: Run::Slice(body),
            },
        };
        Some((value, left))
    }

    fn has_value(&mut self, slot: u32, value: Val<'a>) -> bool {
        let bound = self.variable(slot as usize);
        self.identical(bound, value)
    }
}
