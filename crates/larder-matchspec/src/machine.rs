//! The machine: runs a clause's instructions on a row.
//!
//! A stack of values, the head's variables and an arena, which holds what is computed and does not
//! fit into a value. Nothing is freed during a run; the next run begins with an empty arena of the
//! same memory. In a guard a failing call fails the clause; in a body it has the value `'EXIT'`.

mod builtins;

use crate::{
    compare,
    constant::{Constant, Constants, Span},
    func::{Cmp, Func},
    gen::{Op, Operand},
    head::Match,
    maps,
    outcome::Context,
    raw,
    row::{Fields, Row},
    value::{give, take, Run, Scratch, Val, Values, EXIT, FALSE, NIL, TRUE},
    wire::{self, Head, Short},
};
use larder_term::{tags, TermRef};
use smallvec::SmallVec;

/// An argument that a call does not have.
const NONE: Val<'static> = Val::Bool(false);

/// A guard failed, or a call did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fail;

/// See the module. `'a` is the life of the row, the constants and the context.
pub(crate) struct Machine<'a, 's> {
    pub(crate) row: &'s Row<'a>,
    pub(crate) fields: &'s mut Fields<'a>,
    /// The head of the clause.
    head: &'s Match,
    pub(crate) constants: Constants<'a>,
    pub(crate) context: &'s Context<'a>,
    pub(crate) stack: &'s mut Values<'a>,
    pub(crate) vars: &'s mut Values<'a>,
    pub(crate) frames: &'s mut Vec<(usize, bool)>,
    /// Of each open map whose keys may come in another order than they are asked for: its pairs,
    /// and how many.
    pub(crate) maps: SmallVec<[(&'a [u8], usize); 1]>,
    pub(crate) arena: &'s mut Vec<u8>,
    /// The row and the list of variables, once they were put together.
    object: Option<Span>,
    bindings: Option<Span>,
    /// Where the term that is being written begins.
    building: usize,
    /// Whether a failing call has the value 'EXIT'.
    catching: bool,
}

/// What frames a run.
impl<'a> Machine<'a, '_> {
    /// Runs `work` on a machine for one row, with the memory of `scratch`; `many` if it may need
    /// more than a few values.
    #[inline]
    pub(crate) fn on<R>(
        head: &Match,
        (row, fields): (&Row<'a>, &mut Fields<'a>),
        constants: Constants<'a>,
        context: &Context<'a>,
        (scratch, many): (&mut Scratch, bool),
        work: impl FnOnce(&mut Machine<'a, '_>) -> R,
    ) -> R {
        scratch.arena.clear();
        let mut stack = take(&mut scratch.stack, many);
        let mut vars = take(&mut scratch.vars, many);
        let result = work(&mut Machine {
            row,
            fields,
            head,
            constants,
            context,
            stack: &mut stack,
            vars: &mut vars,
            frames: &mut scratch.frames,
            maps: SmallVec::new(),
            arena: &mut scratch.arena,
            object: None,
            bindings: None,
            building: 0,
            catching: false,
        });
        give(&mut scratch.stack, stack);
        give(&mut scratch.vars, vars);
        result
    }
}

/// A result that borrows nothing of the machine.
pub(crate) enum Found<'a> {
    Object,
    Term(&'a [u8]),
    Arena(Span),
}

impl<'a> Machine<'a, '_> {
    /// A value as a result.
    #[inline]
    pub(crate) fn found(&mut self, value: Val<'a>) -> Found<'a> {
        match value {
            Val::Object => Found::Object,
            other => match self.flat(other) {
                Val::Term(term) => Found::Term(term),
                Val::Arena(span) => Found::Arena(span),
                short => {
                    let from = self.arena.len();
                    self.put(short);
                    let to = self.arena.len();
                    Found::Arena(Span { from, to })
                }
            },
        }
    }
}

impl<'a, 's> Machine<'a, 's> {
    /// Makes ready for the next clause.
    pub(crate) fn next_clause(&mut self, head: &'s Match) {
        self.head = head;
        self.stack.reset(0);
        // Most heads bind elements only.
        self.vars
            .reset(if head.binds { head.places.len() } else { 0 });
        self.bindings = None;
        self.catching = false;
    }
}

impl<'a> Machine<'a, '_> {
    /// Runs guards: whether all are `true`.
    #[inline]
    pub(crate) fn guards(&mut self, ops: &[Op]) -> bool {
        self.catching = false;
        ops.is_empty() || self.run(ops).is_ok()
    }

    /// Runs a body: its value.
    #[inline]
    pub(crate) fn body(&mut self, ops: &[Op]) -> Result<Val<'a>, Fail> {
        if let [Op::Push(operand)] = *ops {
            return Ok(self.operand(operand));
        }
        self.catching = true;
        self.run(ops)?;
        Ok(self.pop())
    }

    pub(crate) fn run(&mut self, ops: &[Op]) -> Result<(), Fail> {
        let mut at = 0;
        while let Some(op) = ops.get(at) {
            at += 1;
            match *op {
                Op::Push(operand) => {
                    let value = self.operand(operand);
                    self.stack.push(value);
                }
                Op::Call(func, args) => self.call(func, usize::from(args))?,
                Op::CallOne(func, a) => match self.part_of_field(func, a) {
                    Some(value) => self.stack.push(value),
                    None => self.call_one(func, a)?,
                },
                Op::CallTwo(func, a, b) => match self.of_two(func, a, b) {
                    Some(value) => self.stack.push(value),
                    None => self.call_two(func, a, b)?,
                },
                Op::CallTop(func, b) => {
                    let ints = self.top_int().zip(self.int(b));
                    match ints.and_then(|(a, b)| builtins::of_ints(func, a, b)) {
                        Some(value) => self.replace_top(value),
                        None => self.call_top(func, b)?,
                    }
                }
                Op::CheckTop(cmp, b) => {
                    if !self.check_top(cmp, b) {
                        return Err(Fail);
                    }
                }
                Op::Test(test) => {
                    let passes = test.passes(self.head, self.fields, &self.constants);
                    self.stack.push(Val::Bool(passes));
                }
                Op::AndAlso(to) => {
                    if self.short(false)? {
                        at = to as usize;
                    }
                }
                Op::OrElse(to) => {
                    if self.short(true)? {
                        at = to as usize;
                    }
                }
                Op::Check => {
                    if self.pop().truth() != Some(true) {
                        return Err(Fail);
                    }
                }
                Op::And(count) => self.all(count as usize, true)?,
                Op::Or(count) => self.all(count as usize, false)?,
                other => self.write(other),
            }
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Val<'a> {
        self.stack.pop()
    }

    #[inline]
    fn operand(&mut self, operand: Operand) -> Val<'a> {
        match operand {
            Operand::Int(n) => Val::Int(n),
            Operand::Field(position) => Val::Term(wire::split(self.fields.run(position)).0),
            Operand::Const(constant) => Val::Term(self.constants.get(constant)),
            Operand::Var(slot) => self.vars.at(slot as usize),
            Operand::Stack(below) => self
                .stack
                .at(self.stack.len().wrapping_sub(below as usize + 1)),
            Operand::Object => self.row.whole().map_or(Val::Object, Val::Term),
            Operand::Bindings => Val::Bindings,
        }
    }

    /// The value of a variable.
    pub(crate) fn variable(&mut self, slot: usize) -> Val<'a> {
        match self.head.places.get(slot) {
            Some(&Some(position)) => self.operand(Operand::Field(position)),
            _ => self.vars.at(slot),
        }
    }

    /// The value of a failed call, where it has one.
    fn failed(&mut self) -> Result<(), Fail> {
        if !self.catching {
            return Err(Fail);
        }
        self.stack.push(Val::Term(EXIT));
        Ok(())
    }

    fn call(&mut self, func: Func, args: usize) -> Result<(), Fail> {
        let base = self.stack.len().saturating_sub(args);
        let given = [
            self.stack.at(base),
            self.stack.at(base + 1),
            self.stack.at(base + 2),
        ];
        self.stack.truncate(base);
        let value = self.apply(func, given);
        self.called(value)
    }

    /// The small integer that an operand is, if it is one.
    #[inline]
    fn int(&mut self, operand: Operand) -> Option<i64> {
        match operand {
            Operand::Int(n) => Some(n),
            Operand::Field(position) => wire::int(self.fields.run(position)),
            Operand::Const(Constant::Argument(index)) => self.constants.int(index),
            _ => None,
        }
    }

    /// What a function gives of two small integers, or the element of a tuple that is an element,
    /// if it is one of these.
    #[inline]
    fn of_two(&mut self, func: Func, a: Operand, b: Operand) -> Option<Val<'a>> {
        let a = self.int(a)?;
        if func == Func::Element {
            let Operand::Field(position) = b else {
                return None;
            };
            return builtins::element_of(a, self.fields.run(position));
        }
        builtins::of_ints(func, a, self.int(b)?)
    }

    /// What a function gives of an element, if it can be read off the element's bytes.
    #[inline]
    fn part_of_field(&mut self, func: Func, a: Operand) -> Option<Val<'a>> {
        match a {
            Operand::Field(position) => builtins::part_of(func, self.fields.run(position)),
            _ => None,
        }
    }

    /// The small integer on the top of the stack, if it is one.
    #[inline]
    fn top_int(&self) -> Option<i64> {
        self.stack.as_slice().last().and_then(builtins::small)
    }

    #[inline]
    fn replace_top(&mut self, value: Val<'a>) {
        if let Some(top) = self.stack.as_mut_slice().last_mut() {
            *top = value;
        }
    }

    #[inline(never)]
    fn call_one(&mut self, func: Func, a: Operand) -> Result<(), Fail> {
        let a = self.operand(a);
        let value = self.apply(func, [a, NONE, NONE]);
        self.called(value)
    }

    #[inline(never)]
    fn call_two(&mut self, func: Func, a: Operand, b: Operand) -> Result<(), Fail> {
        let (a, b) = (self.operand(a), self.operand(b));
        let value = self.apply(func, [a, b, NONE]);
        self.called(value)
    }

    #[inline(never)]
    fn call_top(&mut self, func: Func, b: Operand) -> Result<(), Fail> {
        let (b, a) = (self.operand(b), self.pop());
        let value = self.apply(func, [a, b, NONE]);
        self.called(value)
    }

    /// Takes the value on the top of the stack; whether it compares so to an operand.
    #[inline]
    fn check_top(&mut self, cmp: Cmp, b: Operand) -> bool {
        if let Some((a, b)) = self.top_int().zip(self.int(b)) {
            self.pop();
            return compare::compare_ints(cmp, a, b);
        }
        let (b, a) = (self.operand(b), self.pop());
        self.compare(cmp, a, b)
    }

    /// Pushes the value of a call.
    #[inline]
    fn called(&mut self, value: Result<Val<'a>, Fail>) -> Result<(), Fail> {
        match value {
            Ok(value) => {
                self.stack.push(value);
                Ok(())
            }
            Err(Fail) => self.failed(),
        }
    }

    /// `and` and `or`: every operand must be a boolean, whatever the others are.
    fn all(&mut self, count: usize, and: bool) -> Result<(), Fail> {
        let base = self.stack.len().saturating_sub(count);
        let mut result = Some(and);
        for value in &self.stack.as_slice()[base..] {
            match value.truth() {
                Some(truth) if truth != and => result = result.map(|_| truth),
                Some(_) => {}
                None => result = None,
            }
        }
        self.stack.truncate(base);
        match result {
            Some(truth) => self.stack.push(Val::Bool(truth)),
            None => return self.failed(),
        }
        Ok(())
    }

    /// Whether an operand of `andalso` (`decisive` is false) or `orelse` (true) decides: its value
    /// then stays on the stack.
    fn short(&mut self, decisive: bool) -> Result<bool, Fail> {
        match self.pop().truth() {
            Some(truth) if truth == decisive => {
                self.stack.push(Val::Bool(truth));
                Ok(true)
            }
            Some(_) => Ok(false),
            None => self.failed().map(|()| true),
        }
    }
}

/// Writing terms.
impl<'a> Machine<'a, '_> {
    fn write(&mut self, op: Op) {
        match op {
            Op::Build => self.building = self.arena.len(),
            Op::Raw(span) => self.arena.extend_from_slice(self.constants.pool(span)),
            Op::Put(operand) => {
                let value = self.operand(operand);
                self.put(value);
            }
            Op::ListHead(count, tail) => {
                let value = self.operand(tail);
                self.list_head(count as usize, value);
            }
            Op::ListTail(tail) => {
                let value = self.operand(tail);
                self.list_tail(value);
            }
            Op::Built(taken) => {
                let from = self.building;
                self.stack
                    .truncate(self.stack.len().saturating_sub(taken as usize));
                let to = self.arena.len();
                self.stack.push(Val::Arena(Span { from, to }));
            }
            Op::MakeMap(pairs) => self.make_map(pairs as usize),
            _ => {}
        }
    }

    /// Appends a value to the arena.
    pub(crate) fn put(&mut self, value: Val<'a>) {
        match value {
            Val::Bool(value) => self
                .arena
                .extend_from_slice(if value { TRUE } else { FALSE }),
            Val::Int(n) => self.arena.extend_from_slice(Short::int(n).bytes()),
            Val::Term(term) => self.arena.extend_from_slice(term),
            Val::Arena(span) => self.arena.extend_from_within(span.range()),
            Val::Rest { count, proper, run } => {
                wire::push_head(
                    self.arena,
                    if proper { tags::LIST } else { tags::ILIST },
                    count as usize,
                );
                self.put_run(run);
            }
            Val::Object => self.row.write(self.arena),
            Val::Bindings => self.put_bindings(),
        }
    }

    fn put_run(&mut self, run: Run<'a>) {
        match run {
            Run::Slice(bytes) => self.arena.extend_from_slice(bytes),
            Run::Arena(span) => self.arena.extend_from_within(span.range()),
        }
    }

    fn put_bindings(&mut self) {
        if self.head.places.is_empty() {
            return self.arena.push(tags::NIL);
        }
        wire::push_head(self.arena, tags::LIST, self.head.places.len());
        self.put_variables();
    }

    fn put_variables(&mut self) {
        for slot in 0..self.head.places.len() {
            let value = self.variable(slot);
            self.put(value);
        }
    }

    /// What a list with this tail has after its own elements: how many more, whether it is proper
    /// then, and their run. A tail that is no list has no run.
    fn as_list(&self, value: Val<'a>) -> Option<(usize, bool, Run<'a>)> {
        let (bytes, arena) = match value {
            Val::Rest { count, proper, run } => return Some((count as usize, proper, run)),
            Val::Term(term) => (term, None),
            Val::Arena(span) => (&self.arena[span.range()], Some(span)),
            _ => return None,
        };
        if bytes == NIL {
            return Some((0, true, Run::Slice(&[])));
        }
        let (count, proper, at) = match wire::open(bytes) {
            (Head::List(n), at) => (n, true, at),
            (Head::Improper(n), at) => (n, false, at),
            _ => return None,
        };
        let run = match (arena, value) {
            (Some(span), _) => Run::Arena(Span {
                from: span.from + at,
                to: span.to,
            }),
            (None, Val::Term(term)) => Run::Slice(&term[at..]),
            _ => return None,
        };
        Some((count, proper, run))
    }

    fn list_head(&mut self, count: usize, tail: Val<'a>) {
        let (more, proper) = match tail {
            Val::Bindings => (self.head.places.len(), true),
            other => self
                .as_list(other)
                .map_or((0, false), |(more, proper, _)| (more, proper)),
        };
        wire::push_head(
            self.arena,
            if proper { tags::LIST } else { tags::ILIST },
            count + more,
        );
    }

    fn list_tail(&mut self, tail: Val<'a>) {
        if let Val::Bindings = tail {
            return self.put_variables();
        }
        match self.as_list(tail) {
            Some((_, _, run)) => self.put_run(run),
            None => self.put(tail),
        }
    }

    fn make_map(&mut self, pairs: usize) {
        let base = self.stack.len().saturating_sub(2 * pairs);
        for at in base..self.stack.len() {
            let value = self.stack.at(at);
            self.stack.as_mut_slice()[at] = self.flat(value);
        }
        let mut out = Vec::new();
        let shorts: Vec<Short> = self.stack.as_slice()[base..]
            .iter()
            .map(|value| short_of(*value))
            .collect();
        let bytes = |i: usize| match self.stack.at(base + i) {
            Val::Term(term) => term,
            Val::Arena(span) => &self.arena[span.range()],
            _ => shorts[i].bytes(),
        };
        maps::write(
            (0..pairs)
                .map(|i| (bytes(2 * i), bytes(2 * i + 1)))
                .collect(),
            &mut out,
        );
        self.stack.truncate(base);
        let value = self.store(&out);
        self.stack.push(value);
    }

    /// Puts a whole term into the arena.
    pub(crate) fn store(&mut self, term: &[u8]) -> Val<'a> {
        let from = self.arena.len();
        self.arena.extend_from_slice(term);
        Val::Arena(Span {
            from,
            to: self.arena.len(),
        })
    }

    /// The same value in one piece: no rest of a list, no row, no list of variables.
    pub(crate) fn flat(&mut self, value: Val<'a>) -> Val<'a> {
        let known = match value {
            Val::Object => self.object,
            Val::Bindings => self.bindings,
            Val::Rest { .. } => None,
            _ => return value,
        };
        let span = known.unwrap_or_else(|| {
            let from = self.arena.len();
            self.put(value);
            Span {
                from,
                to: self.arena.len(),
            }
        });
        match value {
            Val::Object => self.object = Some(span),
            Val::Bindings => self.bindings = Some(span),
            _ => {}
        }
        Val::Arena(span)
    }

    /// Calls `f` with a value's term. The value must be flat.
    #[inline]
    pub(crate) fn with<R>(&self, value: Val<'a>, f: impl FnOnce(TermRef<'_>) -> R) -> R {
        match value {
            Val::Term(term) => f(raw::whole(term)),
            Val::Arena(span) => f(raw::whole(&self.arena[span.range()])),
            other => f(raw::whole(short_of(other).bytes())),
        }
    }
}

/// An integer or a boolean, encoded.
fn short_of(value: Val<'_>) -> Short {
    match value {
        Val::Int(n) => Short::int(n),
        Val::Bool(value) => Short::atom(value.into()),
        _ => Short::int(0),
    }
}
