//! The machine: runs a clause's instructions on a row.
//!
//! A stack of values, the head's variables and an arena, which holds what is computed and does not
//! fit into a value. Nothing is freed during a run; the next run begins with an empty arena of the
//! same memory. In a guard a failing call fails the clause; in a body it has the value `'EXIT'`.

use crate::{
    builtins,
    func::{Cmp, Func},
    gen::{Gen, Op, Operand, Ops},
    ir::{Ir, NodeId},
    maps, raw,
    row::Row,
    source::Span,
    value::{give, take, Run, Scratch, Val, Values, EXIT, FALSE, NIL, TRUE},
    wire::{self, Head, Short},
    Context,
};
use larder_term::{tags, TermRef};
use smallvec::SmallVec;

/// A guard failed, or a call did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fail;

/// See the module. `'a` is the life of the row, the constants and the context.
pub(crate) struct Machine<'a, 's> {
    pub(crate) row: &'s Row<'a>,
    pub(crate) pool: &'a [u8],
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
        row: &Row<'a>,
        pool: &'a [u8],
        context: &Context<'a>,
        (scratch, many): (&mut Scratch, bool),
        work: impl FnOnce(&mut Machine<'a, '_>) -> R,
    ) -> R {
        scratch.arena.clear();
        let mut stack = take(&mut scratch.stack, many);
        let mut vars = take(&mut scratch.vars, many);
        let result = work(&mut Machine {
            row,
            pool,
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
        give(&mut scratch.stack, &mut stack);
        give(&mut scratch.vars, &mut vars);
        result
    }
}

impl<'a> Machine<'a, '_> {
    /// Makes ready for the next clause.
    pub(crate) fn next_clause(&mut self, variables: usize) {
        self.stack.reset(0);
        self.vars.reset(variables);
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

    fn run(&mut self, ops: &[Op]) -> Result<(), Fail> {
        let mut at = 0;
        while let Some(op) = ops.get(at) {
            at += 1;
            match *op {
                Op::Int(n) => self.stack.push(Val::Int(n)),
                Op::Push(operand) => {
                    let value = self.operand(operand);
                    self.stack.push(value);
                }
                Op::Call(func, args) => self.call(func, usize::from(args))?,
                Op::CompareInt(cmp, slot, n) => {
                    let value = self.compare_int(cmp, slot, n);
                    self.stack.push(Val::Bool(value));
                }
                Op::CheckInt(cmp, slot, n) => {
                    if !self.compare_int(cmp, slot, n) {
                        return Err(Fail);
                    }
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
    fn operand(&self, operand: Operand) -> Val<'a> {
        match operand {
            Operand::Const(span) => Val::Term(&self.pool[span.range()]),
            Operand::Var(slot) => self.vars.at(slot as usize),
            Operand::Stack(below) => self
                .stack
                .at(self.stack.len().wrapping_sub(below as usize + 1)),
            Operand::Object => self.row.whole().map_or(Val::Object, Val::Term),
            Operand::Bindings => Val::Bindings,
        }
    }

    #[inline]
    fn compare_int(&mut self, cmp: Cmp, slot: u32, n: i64) -> bool {
        let value = self.operand(Operand::Var(slot));
        if let Val::Term(term) = value {
            if let Some(a) = wire::int(term) {
                return builtins::compare_ints(cmp, a, n);
            }
        }
        self.compare(cmp, value, Val::Int(n))
    }

    /// The value of a failed call, where it has one.
    fn failed(&mut self) -> Result<(), Fail> {
        if !self.catching {
            return Err(Fail);
        }
        self.stack.push(Val::Term(EXIT));
        Ok(())
    }

    #[inline]
    fn call(&mut self, func: Func, args: usize) -> Result<(), Fail> {
        let base = self.stack.len().saturating_sub(args);
        if let [a, b] = &self.stack.as_slice()[base..] {
            if let Some(value) = builtins::of_ints(func, a, b) {
                self.stack.truncate(base);
                self.stack.push(value);
                return Ok(());
            }
        }
        let given = [
            self.stack.at(base),
            self.stack.at(base + 1),
            self.stack.at(base + 2),
        ];
        self.stack.truncate(base);
        match self.apply(func, given) {
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
            Op::Raw(span) => self.arena.extend_from_slice(&self.pool[span.range()]),
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
        if self.vars.len() == 0 {
            return self.arena.push(tags::NIL);
        }
        wire::push_head(self.arena, tags::LIST, self.vars.len());
        for slot in 0..self.vars.len() {
            let value = self.vars.at(slot);
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
            Val::Bindings => (self.vars.len(), true),
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
            for slot in 0..self.vars.len() {
                let value = self.vars.at(slot);
                self.put(value);
            }
            return;
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

/// The bytes of the value of an expression that looks at no row; `None` if it fails.
pub(crate) fn constant(ir: &Ir, pool: &mut Vec<u8>, id: NodeId) -> Option<Vec<u8>> {
    let mut ops = Ops::new();
    Gen {
        ir,
        pool,
        ops: &mut ops,
    }
    .value(id);
    let mut scratch = Scratch::new();
    let (row, context) = (Row::none(), Context::none());
    Machine::on(&row, pool, &context, (&mut scratch, false), |machine| {
        machine.run(&ops).ok()?;
        let value = machine.pop();
        let value = machine.flat(value);
        Some(machine.with(value, |term| term.bytes().to_vec()))
    })
}
