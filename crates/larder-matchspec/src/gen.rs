//! Code generation: from nodes to a flat list of instructions for the machine.
//!
//! A call leaves its value on the stack. Tuples, lists and maps that an expression builds are
//! written into the arena in one pass, outermost first. Parts that must be computed are computed
//! before and wait on the stack. So no part is copied twice, however deep it lies.
//!
//! ```text
//!   {{'$1',{'+','$2',1},[a|'$3']}}
//!      CallTwo + Field 2, 1                          the sum, at depth 0 of the stack
//!      Build · Raw «tuple 3» · Put Field 1 · Put Stack 0
//!            · ListHead 1 tail=Field 3 · Raw «a» · ListTail Field 3 · Built 1
//! ```
//!
//! A node of the tree becomes code in one of four ways:
//!
//! | a node is | if | its code |
//! |---|---|---|
//! | *direct* | it is a constant, a variable, `'$_'` or `'$$'` | none: an operand of another instruction |
//! | a *test* | it compares an element with a constant, or the like (`test`) | `Test`, or no code: guards that are tests are decided before the machine runs |
//! | *written* | it is a tuple, a list, or a map whose keys are all constants | between `Build` and `Built`, part by part |
//! | *computed* | it is any other | its operands, then its instruction |
//!
//! A written map is in the order of its encoding. A map with computed keys is built by an
//! instruction of its own, like a call.
//!
//! The computed parts of a written term wait on the stack. They are computed in the order in which
//! they are written, so the one that is written next is the deepest of those that are left:
//!
//! ```text
//!   {f(X), [g(Y) | h(Z)]}     stack, the top at the right      distance from the top
//!     computed                f(X)  h(Z)  g(Y)                 2     1     0
//!     written                 Raw «tuple 2» · Put Stack 2 ·
//!                             ListHead 1 tail=Stack 1 · Put Stack 0 · ListTail Stack 1
//! ```
//!
//! [`Gen::waiting`] lists them, and [`Gen::build`] writes the term. Both walk over it in the same
//! order: a list's tail comes before its elements, since the head of a list needs it.
//!
//! All walks have stacks of their own instead of recursion: a term may be deeply nested.

use crate::{
    constant::{Constant, Span},
    func::{Cmp, Func},
    ir::{Node, NodeId},
    maps,
    test::{Reader, Test, Tests},
    wire,
};
use larder_term::tags;
use smallvec::{smallvec, SmallVec};

/// A value that an instruction reads without popping it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operand {
    Const(Constant),
    /// A small integer.
    Int(i64),
    /// The element at a position.
    Field(usize),
    /// A variable that steps have bound.
    Var(u32),
    /// The value at this distance from the top of the stack.
    Stack(u32),
    /// The object: `'$_'`.
    Object,
    /// The list of all bindings: `'$$'`.
    Bindings,
}

/// An instruction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Op {
    /// Pushes an operand.
    Push(Operand),
    /// Pops this number of values, calls the function with them, and pushes the result.
    Call(Func, u8),
    /// Calls a function with an operand, and pushes the result.
    CallOne(Func, Operand),
    /// Calls a function with two operands, and pushes the result.
    CallTwo(Func, Operand, Operand),
    /// Replaces the top of the stack by the result of calling a function with it and an operand.
    CallTop(Func, Operand),
    /// Pops a value. The clause fails unless the comparison of the value with the operand holds.
    CheckTop(Cmp, Operand),
    /// Pushes whether the row passes a test.
    Test(Test),
    /// Pops this number of booleans, and pushes whether all are `true`.
    And(u32),
    /// Pops this number of booleans, and pushes whether one of them is `true`.
    Or(u32),
    /// If the top of the stack is `false`, jumps to the instruction. If it is `true`, pops it.
    AndAlso(u32),
    /// If the top of the stack is `true`, jumps to the instruction. If it is `false`, pops it.
    OrElse(u32),
    /// Pops this number of pairs of a key and a value, and pushes the map.
    MakeMap(u32),
    /// Begins a term in the arena.
    Build,
    /// Appends bytes of the pool to the term.
    Raw(Span),
    /// Appends an operand to the term.
    Put(Operand),
    /// Appends the head of a list of this number of elements and a tail.
    ListHead(u32, Operand),
    /// Appends the tail of a list. If it is a list, its elements become those of the list that it
    /// ends.
    ListTail(Operand),
    /// Ends the term: pops this number of values that it was made of, and pushes it.
    Built(u32),
    /// Pops a value. The clause fails unless it is `true`.
    Check,
}

/// The instructions of guards or of a body. There are usually few.
pub(crate) type Ops = SmallVec<[Op; 4]>;

/// Emits instructions.
pub(crate) struct Gen<'a> {
    pub(crate) reader: Reader<'a>,
    pub(crate) pool: &'a mut Vec<u8>,
    pub(crate) ops: &'a mut Ops,
}

impl Gen<'_> {
    /// Compiles a guard: adds it to the tests if it is one, and otherwise emits instructions that
    /// fail the clause unless it is `true`.
    pub(crate) fn check(&mut self, guard: NodeId, tests: &mut Tests) {
        let mut guards: SmallVec<[NodeId; 8]> = smallvec![guard];
        while let Some(guard) = guards.pop() {
            match self.reader.ir.node(guard) {
                // Each operand is a guard of its own.
                Node::And(parts) | Node::AndAlso(parts) => {
                    guards.extend(self.reader.ir.of(parts).iter().rev().copied());
                }
                _ => match self.reader.guard(self.pool, guard) {
                    Some(test) => tests.push(test),
                    None => self.check_value(guard),
                },
            }
        }
    }

    /// Emits instructions that compute a guard, and fail the clause unless it is `true`.
    fn check_value(&mut self, guard: NodeId) {
        self.value(guard);
        // If the guard is a comparison, combine it with the check of its result. That isn't
        // possible if the comparison is the last part of another expression: jumps lead to the
        // instruction after it.
        let compares = matches!(self.reader.ir.node(guard), Node::Call(Func::Cmp(_), _));
        match self.ops.pop() {
            Some(Op::CallTop(Func::Cmp(cmp), b)) if compares => {
                self.ops.push(Op::CheckTop(cmp, b));
            }
            last => {
                self.ops.extend(last);
                self.ops.push(Op::Check);
            }
        }
    }
}

/// A task of the generator, which uses a stack of tasks instead of recursion.
enum GenTask {
    /// Emit instructions that push the value of a node.
    Value(NodeId),
    /// Emit an instruction.
    Op(Op),
    /// Emit a short circuit that jumps to the position of the `Land` with this number.
    Jump { and: bool, to: usize },
    /// Let the jumps with this number lead to the next instruction.
    Land(usize),
    /// Emit instructions that write a term of which this number of parts is on the stack.
    Build(NodeId, u32),
}

type GenTasks = SmallVec<[GenTask; 8]>;

/// A part of a term that has yet to be written.
enum BuildPart {
    Node(NodeId),
    /// The tail of a list whose elements come before it.
    Tail(Operand),
}

type BuildParts = SmallVec<[BuildPart; 8]>;

/// The number of values on the stack that wait to be written.
struct Waiting(u32);

impl Waiting {
    /// The value that is written next: the deepest of those that are left.
    fn next(&mut self) -> Operand {
        self.0 -= 1;
        Operand::Stack(self.0)
    }
}

/// Pushes tasks for the values of some nodes, which will be computed in this order.
fn value_all(tasks: &mut GenTasks, parts: &[NodeId]) {
    tasks.extend(parts.iter().rev().map(|&part| GenTask::Value(part)));
}

impl Gen<'_> {
    /// Emits instructions that push the value of an expression.
    pub(crate) fn value(&mut self, root: NodeId) {
        // The task on top is done first. So tasks are pushed in reverse order.
        let mut tasks: GenTasks = smallvec![GenTask::Value(root)];
        let mut jumps: Vec<Vec<usize>> = Vec::new();
        while let Some(task) = tasks.pop() {
            match task {
                GenTask::Value(id) => self.node(id, &mut tasks, &mut jumps),
                GenTask::Op(op) => self.ops.push(op),
                // The target isn't known yet: the jump is filled in by `Land`.
                GenTask::Jump { and, to } => {
                    jumps[to].push(self.ops.len());
                    self.ops
                        .push(if and { Op::AndAlso(0) } else { Op::OrElse(0) });
                }
                GenTask::Land(to) => self.land(&jumps[to]),
                GenTask::Build(id, waiting) => self.build(id, waiting),
            }
        }
    }

    /// Lets some jumps lead to the next instruction.
    fn land(&mut self, jumps: &[usize]) {
        let here = self.ops.len() as u32;
        for &jump in jumps {
            if let Op::AndAlso(to) | Op::OrElse(to) = &mut self.ops[jump] {
                *to = here;
            }
        }
    }

    /// Emits the instruction of a node whose operands need no instructions. Otherwise pushes tasks:
    /// first for the operands, then for the node itself.
    fn node(&mut self, id: NodeId, tasks: &mut GenTasks, jumps: &mut Vec<Vec<usize>>) {
        // An operand that lies in the row or the pool is read there, without an instruction for it.
        if let Some(operand) = self.direct(id) {
            return self.ops.push(Op::Push(operand));
        }
        match self.reader.ir.node(id) {
            Node::Const(_) | Node::Var(_) | Node::Object | Node::Bindings => {}
            Node::Call(func, parts) => {
                // A test is decided on the element's bytes.
                if let Some(test) = self.reader.value(self.pool, id) {
                    return self.ops.push(Op::Test(test));
                }
                self.call(func, self.reader.ir.of(parts), tasks);
            }
            Node::And(parts) => {
                // The operands come first, and the instruction takes them off the stack.
                tasks.push(GenTask::Op(Op::And(self.reader.ir.of(parts).len() as u32)));
                value_all(tasks, self.reader.ir.of(parts));
            }
            Node::Or(parts) => {
                tasks.push(GenTask::Op(Op::Or(self.reader.ir.of(parts).len() as u32)));
                value_all(tasks, self.reader.ir.of(parts));
            }
            Node::AndAlso(parts) => self.circuit(true, parts, tasks, jumps),
            Node::OrElse(parts) => self.circuit(false, parts, tasks, jumps),
            Node::Map(parts) if !self.is_written(id) => {
                let parts = self.reader.ir.of(parts);
                tasks.push(GenTask::Op(Op::MakeMap(parts.len() as u32 / 2)));
                value_all(tasks, parts);
            }
            // Compute the parts that must be computed, then write the term.
            Node::Tuple(_) | Node::List(_) | Node::Map(_) => {
                let waiting = self.waiting(id);
                tasks.push(GenTask::Build(id, waiting.len() as u32));
                value_all(tasks, &waiting);
            }
        }
    }

    /// Emits the instruction of a call whose operands need no instructions. Otherwise pushes tasks:
    /// for the operands, and for the call. Calls of one or two operands have instructions that read
    /// these in place. Only the others take all operands from the stack.
    fn call(&mut self, func: Func, parts: &[NodeId], tasks: &mut GenTasks) {
        match *parts {
            [a] => match self.direct(a) {
                Some(a) => return self.ops.push(Op::CallOne(func, a)),
                None => tasks.push(GenTask::Op(Op::Call(func, 1))),
            },
            // At most one operand is computed, so it is on top of the stack, and the other one is
            // read in place.
            [a, b] => match (self.direct(a), self.direct(b)) {
                (Some(a), Some(b)) => return self.ops.push(Op::CallTwo(func, a, b)),
                (None, Some(b)) => {
                    tasks.push(GenTask::Op(Op::CallTop(func, b)));
                    return tasks.push(GenTask::Value(a));
                }
                // A comparison may be turned around, so its left operand may be read in place, too.
                (Some(a), None) if matches!(func, Func::Cmp(_)) => {
                    tasks.push(GenTask::Op(Op::CallTop(func.turned(), a)));
                    return tasks.push(GenTask::Value(b));
                }
                _ => tasks.push(GenTask::Op(Op::Call(func, 2))),
            },
            _ => tasks.push(GenTask::Op(Op::Call(func, parts.len() as u8))),
        }
        value_all(tasks, parts);
    }

    /// Pushes tasks for a short-circuit operator: the operands, with a jump after each but the
    /// last. All jumps lead past the last operand.
    fn circuit(
        &mut self,
        and: bool,
        parts: crate::ir::Parts,
        tasks: &mut GenTasks,
        jumps: &mut Vec<Vec<usize>>,
    ) {
        // All jumps of one operator lead to the same instruction.
        let to = jumps.len();
        jumps.push(Vec::new());
        tasks.push(GenTask::Land(to));
        // The last operand is pushed first, so the first one is evaluated first.
        for (i, &part) in self.reader.ir.of(parts).iter().rev().enumerate() {
            if i > 0 {
                tasks.push(GenTask::Jump { and, to });
            }
            tasks.push(GenTask::Value(part));
        }
    }

    /// Whether a node is written part by part, instead of being computed first.
    fn is_written(&self, id: NodeId) -> bool {
        match self.reader.ir.node(id) {
            Node::Tuple(_) | Node::List(_) => true,
            // If two pairs have the same key, both values must be computed, since either may fail.
            Node::Map(parts) => {
                let keys = self.reader.ir.of(parts).iter().step_by(2);
                keys.clone()
                    .all(|&key| self.reader.ir.constant(key).is_some())
                    && self.pairs(id).len() == 2 * keys.len()
            }
            _ => false,
        }
    }

    /// Whether a node must be computed before the term that contains it is written.
    fn is_computed(&self, id: NodeId) -> bool {
        !self.is_written(id) && self.operand(id).is_none()
    }

    /// The operand of a node that needs no instructions. Integers are immediate.
    fn direct(&self, id: NodeId) -> Option<Operand> {
        let operand = self.operand(id)?;
        if let Operand::Const(constant) = operand {
            let int = constant.fixed(self.pool).and_then(wire::int);
            return Some(int.map_or(operand, Operand::Int));
        }
        Some(operand)
    }

    /// The operand of a node that needs no instructions.
    fn operand(&self, id: NodeId) -> Option<Operand> {
        // These need no instruction: the machine reads them where they are.
        match self.reader.ir.node(id) {
            Node::Const(constant) => Some(Operand::Const(constant)),
            Node::Var(slot) => {
                let place = self.reader.places.get(slot as usize).copied().flatten();
                Some(place.map_or(Operand::Var(slot), Operand::Field))
            }
            Node::Object => Some(Operand::Object),
            Node::Bindings => Some(Operand::Bindings),
            _ => None,
        }
    }

    /// The nodes of a term that must be computed, in the order in which `build` meets them: the
    /// tail of a list comes before its elements.
    fn waiting(&self, root: NodeId) -> SmallVec<[NodeId; 8]> {
        // Walk over the term as `build` does. The parts that are found are computed before it.
        let mut found = SmallVec::new();
        let mut nodes: SmallVec<[NodeId; 8]> = smallvec![root];
        while let Some(id) = nodes.pop() {
            if self.is_computed(id) {
                found.push(id);
                continue;
            }
            match self.reader.ir.node(id) {
                Node::Tuple(parts) => nodes.extend(self.reader.ir.of(parts).iter().rev().copied()),
                Node::Map(_) => nodes.extend(self.pairs(id).into_iter().rev()),
                // `build` writes the head of a list first, for which it needs the tail.
                Node::List(parts) => {
                    let (elements, tail) = split_list(self.reader.ir.of(parts));
                    if self.is_computed(tail) {
                        found.push(tail);
                    } else {
                        nodes.push(tail);
                    }
                    nodes.extend(elements.iter().rev().copied());
                }
                _ => {}
            }
        }
        found
    }

    /// The keys and values of a map with constant keys, in the order of the encoding. If two keys
    /// are equal, one of the pairs is left out.
    fn pairs(&self, id: NodeId) -> Vec<NodeId> {
        let Node::Map(parts) = self.reader.ir.node(id) else {
            return Vec::new();
        };
        // Pairs are sorted by the bytes of their keys, which are constants.
        let mut pairs: Vec<(&[u8], NodeId, NodeId)> = Vec::new();
        for pair in self.reader.ir.of(parts).chunks_exact(2) {
            let key = self.reader.ir.constant(pair[0]);
            if let Some(bytes) = key.and_then(|key| key.fixed(self.pool)) {
                pairs.push((bytes, pair[0], pair[1]));
            }
        }
        maps::in_order(&mut pairs, |pair| pair.0);
        pairs
            .into_iter()
            .flat_map(|(_, key, value)| [key, value])
            .collect()
    }

    /// Emits instructions that write a term. `waiting` of its parts have been computed and are on
    /// the stack; the one that is used first is the deepest.
    fn build(&mut self, root: NodeId, waiting: u32) {
        self.ops.push(Op::Build);
        let mut left = Waiting(waiting);
        let mut parts: BuildParts = smallvec![BuildPart::Node(root)];
        while let Some(part) = parts.pop() {
            match part {
                // The elements of the list have been written. The tail is the last part.
                BuildPart::Tail(operand) => self.ops.push(Op::ListTail(operand)),
                BuildPart::Node(id) if self.is_computed(id) => {
                    self.ops.push(Op::Put(left.next()));
                }
                BuildPart::Node(id) => self.build_node(id, &mut parts, &mut left),
            }
        }
        self.ops.push(Op::Built(waiting));
    }

    /// Emits the head of a container, and pushes its parts, of which the first is written next.
    /// Emits the instruction of any other node.
    fn build_node(&mut self, id: NodeId, parts: &mut BuildParts, left: &mut Waiting) {
        match self.reader.ir.node(id) {
            Node::Tuple(edges) => {
                let edges = self.reader.ir.of(edges);
                self.raw_head(tags::TUPLE, edges.len());
                parts.extend(edges.iter().rev().map(|&edge| BuildPart::Node(edge)));
            }
            Node::Map(_) => {
                let pairs = self.pairs(id);
                self.raw_head(tags::MAP, pairs.len() / 2);
                parts.extend(pairs.into_iter().rev().map(BuildPart::Node));
            }
            Node::List(edges) => self.build_list(self.reader.ir.of(edges), parts, left),
            _ => self.put(id),
        }
    }

    /// The same for a list, by its elements and its tail.
    fn build_list(&mut self, edges: &[NodeId], parts: &mut BuildParts, left: &mut Waiting) {
        let (elements, tail) = split_list(edges);
        let operand = match self.is_computed(tail) {
            true => Some(left.next()),
            false => self.operand(tail),
        };
        match operand {
            // With a tail that is known, the head says at once how long the list is.
            Some(operand) => {
                if self.list_head(elements.len(), operand) {
                    parts.push(BuildPart::Tail(operand));
                }
            }
            // The tail is built in place, after the elements.
            None => {
                self.raw_head(tags::ILIST, elements.len());
                parts.push(BuildPart::Node(tail));
            }
        }
        parts.extend(elements.iter().rev().map(|&edge| BuildPart::Node(edge)));
    }

    /// Emits the instruction that writes a node. A constant becomes a part of the raw bytes.
    fn put(&mut self, id: NodeId) {
        // Constants are copied into the raw bytes around them, so that they are written together.
        match self.operand(id) {
            Some(Operand::Const(Constant::Fixed(span))) => {
                self.pool.extend_from_within(span.range());
                self.raw(span.to - span.from);
            }
            Some(operand) => self.ops.push(Op::Put(operand)),
            None => {}
        }
    }

    /// Emits the head of a list. Returns whether a tail must follow its elements.
    fn list_head(&mut self, count: usize, tail: Operand) -> bool {
        if let Operand::Const(Constant::Fixed(span)) = tail {
            // With `[]` as its tail, the list is proper, and nothing follows.
            if self.pool[span.range()] == [tags::NIL] {
                self.raw_head(tags::LIST, count);
                return false;
            }
        }
        self.ops.push(Op::ListHead(count as u32, tail));
        true
    }

    /// Emits the head of a container as raw bytes.
    fn raw_head(&mut self, tag: u8, n: usize) {
        let from = self.pool.len();
        wire::push_head(self.pool, tag, n);
        self.raw(self.pool.len() - from);
    }

    /// Emits the last `len` bytes of the pool as raw bytes. If the previous instruction writes the
    /// bytes before them, extends it.
    fn raw(&mut self, len: usize) {
        let to = self.pool.len();
        let from = to - len;
        match self.ops.last_mut() {
            Some(Op::Raw(span)) if span.to == from => span.to = to,
            _ => self.ops.push(Op::Raw(Span { from, to })),
        }
    }
}

/// The elements and the tail of a list.
fn split_list(parts: &[NodeId]) -> (&[NodeId], NodeId) {
    match parts.split_last() {
        Some((tail, elements)) => (elements, *tail),
        None => (&[], 0),
    }
}
