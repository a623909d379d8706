//! The machine: runs a clause's instructions on a row.
//!
//! It is a stack machine: it has a stack of values, the variables that the head binds, and an
//! arena, which holds computed terms that do not fit into a [`Val`]. Nothing in the arena is freed
//! during a run; the next run clears it and reuses its memory. A call that fails in a guard fails
//! the clause; a call that fails in a body evaluates to `'EXIT'`.

mod builtins;

use crate::{
    body::Found,
    compare,
    constant::{Constant, Constants, Span},
    func::{Cmp, Func},
    gen::{Op, Operand},
    head::CompiledHead,
    map_search::UnorderedMap,
    maps,
    outcome::Context,
    raw,
    row::Row,
    test,
    value::{give, take, MachineValues, Run, Scratch, Val, EXIT, FALSE, NIL, TRUE},
    wire::{self, Head, Short},
};
use larder_term::{tags, TermRef};
use smallvec::SmallVec;

/// Fills the argument places that a call of fewer than three arguments leaves unused.
const NONE: Val<'static> = Val::Bool(false);

/// A guard was not `true`, or a call in it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fail;

/// The state of a run (see the module). `'a` is the lifetime of the row, the constants and the
/// context; `'s` is that of the run itself.
pub(crate) struct Machine<'a, 's> {
    pub(crate) row: &'s mut Row<'a>,
    /// The head of the clause.
    head: &'s CompiledHead,
    pub(crate) constants: Constants<'a>,
    pub(crate) context: &'s Context<'a>,
    pub(crate) stack: &'s mut MachineValues<'a>,
    pub(crate) vars: &'s mut MachineValues<'a>,
    pub(crate) frames: &'s mut Vec<(usize, bool)>,
    /// The map of each map pattern being matched whose keys may be stored in another order than the
    /// pattern names them.
    pub(crate) maps: SmallVec<[UnorderedMap<'a>; 1]>,
    pub(crate) arena: &'s mut Vec<u8>,
    /// Where the whole row (`'$_'`) lies in the arena, once it has been written there.
    object: Option<Span>,
    /// Where the list of the variables (`'$$'`) lies in the arena, once it has been written there.
    bindings: Option<Span>,
    /// The offset in the arena at which the term under construction begins.
    building: usize,
    /// Whether a failing call evaluates to `'EXIT'`, as in a body, or fails the clause.
    catching: bool,
}

/// What instructions read besides the row.
pub(crate) struct Environment<'r, 'a> {
    pub(crate) constants: Constants<'a>,
    pub(crate) context: &'r Context<'a>,
}

/// The memory from which a machine borrows.
pub(crate) struct Memory<'r> {
    pub(crate) scratch: &'r mut Scratch,
    /// Whether the program may need more values than the inline arrays hold.
    pub(crate) many: bool,
}

/// Setting up a run.
impl<'a> Machine<'a, '_> {
    /// Runs `work` on a machine for one row. `head` is that of the first clause.
    #[inline]
    pub(crate) fn on<R>(
        head: &CompiledHead,
        row: &mut Row<'a>,
        Environment { constants, context }: Environment<'_, 'a>,
        Memory { scratch, many }: Memory<'_>,
        work: impl FnOnce(&mut Machine<'a, '_>) -> R,
    ) -> R {
        scratch.arena.clear();
        // The stack's memory is that of earlier runs. It is taken out, since its values have
        // another lifetime.
        let mut stack = take(&mut scratch.stack, many);
        let mut vars = take(&mut scratch.vars, many);
        let result = work(&mut Machine {
            row,
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

impl<'a> Machine<'a, '_> {
    /// Where the value of a body is. An integer or a boolean is encoded into the arena first.
    #[inline]
    pub(crate) fn locate_result<'r>(&mut self, value: Val<'a>) -> Found<'r, 'a> {
        match value {
            Val::Object => Found::Object,
            // What lies in the row or in the arena is a term already.
            other => match self.flat(other) {
                Val::Term(term) => Found::Term(term),
                Val::Arena(span) => Found::Arena(span),
                // A value that is no term yet is written to the arena.
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
    /// Resets the machine for the next clause on the same row. The arena and the copy of the row in
    /// it stay valid; the list of the variables does not.
    pub(crate) fn next_clause(&mut self, head: &'s CompiledHead) {
        self.head = head;
        self.stack.reset(0);
        // Most heads bind elements of the row only, which are read from the row itself.
        self.vars
            .reset(if head.binds { head.places.len() } else { 0 });
        self.bindings = None;
        self.catching = false;
    }
}

impl<'a> Machine<'a, '_> {
    /// Runs the guards and returns whether all of them are `true`.
    #[inline]
    pub(crate) fn guards(&mut self, ops: &[Op]) -> bool {
        self.catching = false;
        // Without guards, every row passes.
        ops.is_empty() || self.run(ops).is_ok()
    }

    /// Runs a body and returns its value.
    #[inline]
    pub(crate) fn body(&mut self, ops: &[Op]) -> Result<Val<'a>, Fail> {
        // A body that is a single operand, the common case, needs no run.
        if let [Op::Push(operand)] = *ops {
            // The row as a whole is its host's, which has it in its own form.
            return Ok(match operand {
                Operand::Object => Val::Object,
                _ => self.operand(operand),
            });
        }
        // From here on, the value of a call that fails is `'EXIT'`.
        self.catching = true;
        self.run(ops)?;
        Ok(self.pop())
    }

    /// Executes `ops` in order, except for the jumps of `andalso` and `orelse`. An instruction
    /// whose operands are elements of the row or small integers first tries a short cut that works
    /// on the encoded bytes. Only if that does not apply are the operands turned into values and
    /// the function called.
    pub(crate) fn run(&mut self, ops: &[Op]) -> Result<(), Fail> {
        let mut at = 0;
        while let Some(op) = ops.get(at) {
            at += 1;
            match *op {
                // Instructions are in the order in which their results are needed, so each takes
                // its operands off the top.
                Op::Push(operand) => {
                    let value = self.operand(operand);
                    self.stack.push(value);
                }
                Op::Call(func, args) => self.call(func, usize::from(args))?,
                // A few functions need no more than the head of an element.
                Op::CallOne(func, a) => match self.apply_to_field(func, a) {
                    Some(value) => self.stack.push(value),
                    None => self.call_one(func, a)?,
                },
                Op::CallTwo(func, a, b) => match self.apply_to_operands(func, a, b) {
                    Some(value) => self.stack.push(value),
                    None => self.call_two(func, a, b)?,
                },
                // The first argument is on the top of the stack and the result replaces it.
                Op::CallTop(func, b) => {
                    let ints = self.top_int().zip(self.int(b));
                    // Two small integers need no values.
                    match ints.and_then(|(a, b)| builtins::apply_to_ints(func, a, b)) {
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
                    let passes = test.passes(self.head, self.row, &self.constants);
                    self.stack.push(Val::Bool(passes));
                }
                // The left operand, if it decides, is the result: the right one is jumped over.
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
                Op::MakeMap(pairs) => self.make_map(pairs as usize),
                // What is appended to the arena between `Build` and `Built` is one term. The arena
                // only grows during a run, so a part that was written stays where it is.
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
                // The operands that were on the stack have been copied into the term.
                Op::Built(taken) => {
                    let from = self.building;
                    self.stack
                        .truncate(self.stack.len().saturating_sub(taken as usize));
                    let to = self.arena.len();
                    self.stack.push(Val::Arena(Span { from, to }));
                }
            }
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Val<'a> {
        self.stack.pop()
    }

    /// The value of an operand.
    #[inline]
    fn operand(&mut self, operand: Operand) -> Val<'a> {
        match operand {
            Operand::Int(n) => Val::Int(n),
            // The fields hold the run of terms that begins with the element.
            Operand::Field(position) => Val::Term(self.row.whole_element(position)),
            Operand::Const(constant) => Val::Term(self.constants.get(constant)),
            Operand::Var(slot) => self.vars.at(slot as usize),
            // Counted from the top of the stack.
            Operand::Stack(below) => self
                .stack
                .at(self.stack.len().wrapping_sub(below as usize + 1)),
            // A stored object keeps its key apart and has no contiguous encoding. It stays symbolic
            // until its bytes are needed.
            Operand::Object => self.row.whole().map_or(Val::Object, Val::Term),
            Operand::Bindings => Val::Bindings,
        }
    }

    /// The value of a variable: read from the row where the head binds it to an element.
    pub(crate) fn variable(&mut self, slot: usize) -> Val<'a> {
        match self.head.places.get(slot) {
            Some(&Some(position)) => self.operand(Operand::Field(position)),
            _ => self.vars.at(slot),
        }
    }

    /// Handles a failed call: pushes `'EXIT'` in a body and fails in a guard.
    fn failed(&mut self) -> Result<(), Fail> {
        if !self.catching {
            return Err(Fail);
        }
        self.stack.push(Val::Term(EXIT));
        Ok(())
    }

    /// Calls a function whose arguments are the top `args` values of the stack.
    fn call(&mut self, func: Func, args: usize) -> Result<(), Fail> {
        let base = self.stack.len().saturating_sub(args);
        // Places past the top read as `NONE`, and `apply` looks at as many as the function takes.
        let given = [
            self.stack.at(base),
            self.stack.at(base + 1),
            self.stack.at(base + 2),
        ];
        self.stack.truncate(base);
        let value = self.apply(func, given);
        self.finish_call(value)
    }

    /// The operand as a small integer, if it is one.
    #[inline]
    fn int(&mut self, operand: Operand) -> Option<i64> {
        match operand {
            Operand::Int(n) => Some(n),
            Operand::Field(position) => wire::int(self.row.run(position)),
            Operand::Const(Constant::Argument(index)) => self.constants.int(index),
            Operand::Var(slot) => builtins::small(&self.vars.at(slot as usize)),
            _ => None,
        }
    }

    /// Short cut: applies a function to two small integers, `element/2` to an element of the row
    /// that is a tuple, or a comparison to a variable and a constant; or looks for a constant key
    /// in an element of the row that is a map. `None` if the operands are others.
    #[inline]
    fn apply_to_operands(&mut self, func: Func, a: Operand, b: Operand) -> Option<Val<'a>> {
        // Read the operands in place. Nothing is pushed for them.
        let Some(a) = self.int(a) else {
            return self.apply_to_constant(func, a, b);
        };
        if let (Func::Element | Func::MapGet | Func::IsMapKey, Operand::Field(position)) = (func, b)
        {
            let run = self.row.run(position);
            return match func {
                Func::Element => builtins::element_of(a, run),
                _ => builtins::look_up(func, Short::int(a).bytes(), run),
            };
        }
        builtins::apply_to_ints(func, a, self.int(b)?)
    }

    /// The short cuts for a constant that is no small integer.
    #[inline(never)]
    fn apply_to_constant(&mut self, func: Func, a: Operand, b: Operand) -> Option<Val<'a>> {
        match (func, a, b) {
            (Func::MapGet | Func::IsMapKey, Operand::Const(key), Operand::Field(position)) => {
                builtins::look_up(func, self.constants.get(key), self.row.run(position))
            }
            (Func::Cmp(cmp), Operand::Var(slot), Operand::Const(constant)) => {
                let Val::Term(term) = self.vars.at(slot as usize) else {
                    return None;
                };
                let constant = self.constants.get(constant);
                Some(Val::Bool(test::compare_to_constant(cmp, term, constant)))
            }
            _ => None,
        }
    }

    /// Short cut: applies a function to an element of the row if the result can be read off the
    /// element's bytes (such as `hd/1` or `length/1`).
    #[inline]
    fn apply_to_field(&mut self, func: Func, a: Operand) -> Option<Val<'a>> {
        match a {
            Operand::Field(position) => builtins::apply_to_head(func, self.row.run(position)),
            _ => None,
        }
    }

    /// The top of the stack as a small integer, if it is one.
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
        self.finish_call(value)
    }

    #[inline(never)]
    fn call_two(&mut self, func: Func, a: Operand, b: Operand) -> Result<(), Fail> {
        let (a, b) = (self.operand(a), self.operand(b));
        let value = self.apply(func, [a, b, NONE]);
        self.finish_call(value)
    }

    #[inline(never)]
    fn call_top(&mut self, func: Func, b: Operand) -> Result<(), Fail> {
        // The operand is read before the top is popped, since its place may be counted from there.
        let (b, a) = (self.operand(b), self.pop());
        let value = self.apply(func, [a, b, NONE]);
        self.finish_call(value)
    }

    /// Pops the top of the stack and returns whether it compares to the operand as `cmp` demands.
    #[inline]
    fn check_top(&mut self, cmp: Cmp, b: Operand) -> bool {
        if let Some((a, b)) = self.top_int().zip(self.int(b)) {
            // The operand isn't on the stack, so only the top is popped.
            self.pop();
            return compare::compare_ints(cmp, a, b);
        }
        // As in `call_top`, the operand first.
        let (b, a) = (self.operand(b), self.pop());
        self.compare(cmp, a, b)
    }

    /// Pushes the result of a call or handles its failure.
    #[inline]
    fn finish_call(&mut self, value: Result<Val<'a>, Fail>) -> Result<(), Fail> {
        // A failure has different effects: a guard fails, and a body continues with `'EXIT'`.
        match value {
            Ok(value) => {
                self.stack.push(value);
                Ok(())
            }
            Err(Fail) => self.failed(),
        }
    }

    /// Evaluates `and` and `or`, which are strict: every operand must be a boolean, even after one
    /// that already decides.
    fn all(&mut self, count: usize, and: bool) -> Result<(), Fail> {
        // The operands are the last `count` values of the stack.
        let base = self.stack.len().saturating_sub(count);
        let mut result = Some(and);
        for value in &self.stack.as_slice()[base..] {
            // All operands are looked at, also after one that decides, since one that is no
            // boolean makes the call fail.
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

    /// Pops an operand of `andalso` (`decisive` is false) or `orelse` (`decisive` is true). If it
    /// decides the result, pushes it back as the result and returns true: the remaining operands
    /// are to be jumped over.
    fn short(&mut self, decisive: bool) -> Result<bool, Fail> {
        // An operand that is no boolean fails, whatever the others are.
        match self.pop().truth() {
            Some(truth) if truth == decisive => {
                self.stack.push(Val::Bool(truth));
                Ok(true)
            }
            Some(_) => Ok(false),
            // In a body the result is `'EXIT'`, and the other operands are jumped over.
            None => self.failed().map(|()| true),
        }
    }
}

/// Writing terms.
impl<'a> Machine<'a, '_> {
    /// Appends the encoding of a value to the arena.
    pub(crate) fn put(&mut self, value: Val<'a>) {
        match value {
            Val::Bool(value) => self
                .arena
                .extend_from_slice(if value { TRUE } else { FALSE }),
            Val::Int(n) => self.arena.extend_from_slice(Short::int(n).bytes()),
            Val::Term(term) => self.arena.extend_from_slice(term),
            // The value is in the arena already, and is copied after what is there.
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

    /// Appends a run of encoded list elements.
    fn put_run(&mut self, run: Run<'a>) {
        match run {
            Run::Slice(bytes) => self.arena.extend_from_slice(bytes),
            Run::Arena(span) => self.arena.extend_from_within(span.range()),
        }
    }

    /// Appends the list of all variables (`'$$'`).
    fn put_bindings(&mut self) {
        if self.head.places.is_empty() {
            return self.arena.push(tags::NIL);
        }
        wire::push_head(self.arena, tags::LIST, self.head.places.len());
        self.put_variables();
    }

    /// Appends the variables one after another, without the head of a list.
    fn put_variables(&mut self) {
        for slot in 0..self.head.places.len() {
            let value = self.variable(slot);
            self.put(value);
        }
    }

    /// A list is encoded flat: `[a, b | Tail]` with a list as its tail is one list, whose elements
    /// include those of the tail. Returns the number of elements that `value` contributes as a
    /// tail, whether the whole list is then proper, and the run of the encoded elements; `None` if
    /// `value` is not a list and the whole list is therefore improper.
    fn as_list(&self, value: Val<'a>) -> Option<(usize, bool, Run<'a>)> {
        // A list that is known by its rest is taken apart already.
        let (bytes, arena) = match value {
            Val::Rest { count, proper, run } => return Some((count as usize, proper, run)),
            Val::Term(term) => (term, None),
            Val::Arena(span) => (&self.arena[span.range()], Some(span)),
            _ => return None,
        };
        // The empty list contributes no elements, and makes the list proper.
        if bytes == NIL {
            return Some((0, true, Run::Slice(&[])));
        }
        let (count, proper, at) = match wire::open(bytes) {
            (Head::List(n), at) => (n, true, at),
            (Head::Improper(n), at) => (n, false, at),
            _ => return None,
        };
        // The elements stay where they are. Those in the arena are remembered by their offsets,
        // since the arena may move when it grows.
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

    /// Appends the head of a list of `count` elements before the tail. The tail is evaluated at
    /// this point already because the head counts its elements too.
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

    /// Appends the elements of the tail, or the tail itself if it is not a list.
    fn list_tail(&mut self, tail: Val<'a>) {
        // The variables are a list that isn't stored as one.
        if let Val::Bindings = tail {
            return self.put_variables();
        }
        match self.as_list(tail) {
            Some((_, _, run)) => self.put_run(run),
            None => self.put(tail),
        }
    }

    /// Pops the keys and values of a map and pushes the map. A map's pairs are stored in the order
    /// of the keys, so the encoded pairs have to be sorted first.
    fn make_map(&mut self, pairs: usize) {
        let base = self.stack.len().saturating_sub(2 * pairs);
        // Every key and value becomes contiguous bytes: in the row, in the arena, or in `shorts`
        // for integers and booleans.
        for at in base..self.stack.len() {
            let value = self.stack.at(at);
            self.stack.as_mut_slice()[at] = self.flat(value);
        }
        // Write the map elsewhere first, since its parts may be in the arena.
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

    /// Copies an encoded term into the arena.
    pub(crate) fn store(&mut self, term: &[u8]) -> Val<'a> {
        let from = self.arena.len();
        self.arena.extend_from_slice(term);
        Val::Arena(Span {
            from,
            to: self.arena.len(),
        })
    }

    /// Returns the same value in contiguous form: the tail of a list, the row and the list of the
    /// variables are written into the arena. The latter two are written once for each clause or row
    /// and then found in `object` and `bindings`.
    pub(crate) fn flat(&mut self, value: Val<'a>) -> Val<'a> {
        // The row and the list of variables are written at most once.
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
        // Remember where it is, for the next instruction that asks for it.
        match value {
            Val::Object => self.object = Some(span),
            Val::Bindings => self.bindings = Some(span),
            _ => {}
        }
        Val::Arena(span)
    }

    /// Calls `f` with the term of a value, which must be flat (see [`flat`](Self::flat)).
    #[inline]
    pub(crate) fn with<R>(&self, value: Val<'a>, f: impl FnOnce(TermRef<'_>) -> R) -> R {
        match value {
            Val::Term(term) => f(raw::whole(term)),
            Val::Arena(span) => f(raw::whole(&self.arena[span.range()])),
            other => f(raw::whole(short_of(other).bytes())),
        }
    }
}

/// The encoding of an integer or a boolean.
fn short_of(value: Val<'_>) -> Short {
    match value {
        Val::Int(n) => Short::int(n),
        Val::Bool(value) => Short::atom(value.into()),
        _ => Short::int(0),
    }
}
