//! Code: from nodes to a flat list of instructions for the machine.
//!
//! Calls leave a value on the stack. Tuples, lists and maps that the expression builds are written
//! in one go, outermost first, into the arena; what must be computed for them is computed before
//! and waits on the stack, so that no part is copied twice however deep it lies.
//!
//! ```text
//!   {{'$1',{'+','$2',1},[a|'$3']}}
//!      CallTwo + Field 2, 1                          the sum, at depth 0 of the stack
//!      Build · Raw «tuple 3» · Put Field 1 · Put Stack 0 · ListHead 1 tail=Field 3 · Raw «a» · ListTail Field 3 · Built 1
//! ```
//!
//! A map whose keys are all constants is written in place in the order of its encoding; one with
//! computed keys is put together by an instruction of its own, like a call.

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

/// A value that an instruction finds somewhere without popping it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operand {
    Const(Constant),
    /// A small integer.
    Int(i64),
    /// The element at a position.
    Field(usize),
    /// A variable that steps have bound.
    Var(u32),
    /// So far below the top of the stack.
    Stack(u32),
    Object,
    Bindings,
}

/// An instruction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Op {
    /// Pushes an operand.
    Push(Operand),
    /// Calls with so many values from the stack, and pushes the result.
    Call(Func, u8),
    /// Calls with an operand, and pushes the result.
    CallOne(Func, Operand),
    /// Calls with two operands, and pushes the result.
    CallTwo(Func, Operand, Operand),
    /// Calls with the value on the top of the stack and an operand; the result takes its place.
    CallTop(Func, Operand),
    /// Takes the value on the top of the stack; the clause fails unless it compares so to an
    /// operand.
    CheckTop(Cmp, Operand),
    /// Pushes whether the row passes.
    Test(Test),
    /// Takes so many values; whether all are `true`.
    And(u32),
    /// Takes so many values; whether one is `true`.
    Or(u32),
    /// `false`: leaves it and goes on at the place. `true`: takes it.
    AndAlso(u32),
    /// `true`: leaves it and goes on at the place. `false`: takes it.
    OrElse(u32),
    /// Takes keys and values by turns, so many pairs; pushes the map.
    MakeMap(u32),
    /// Begins to write a term into the arena.
    Build,
    /// Writes bytes of the pool.
    Raw(Span),
    /// Writes an operand.
    Put(Operand),
    /// Writes the head of a list of so many elements and a tail.
    ListHead(u32, Operand),
    /// Writes the elements of a list as those of the list around it, or a tail that is no list.
    ListTail(Operand),
    /// The term is written: takes so many values that it was made of, pushes it.
    Built(u32),
    /// Takes a value; the clause fails unless it is `true`.
    Check,
}

/// The instructions of guards or of a body: few, as a rule.
pub(crate) type Ops = SmallVec<[Op; 4]>;

/// Writes instructions.
pub(crate) struct Gen<'a> {
    pub(crate) reader: Reader<'a>,
    pub(crate) pool: &'a mut Vec<u8>,
    pub(crate) ops: &'a mut Ops,
}

impl Gen<'_> {
    /// Adds tests, and instructions that fail the clause unless a guard is `true`.
    pub(crate) fn check(&mut self, guard: NodeId, tests: &mut Tests) {
        let mut guards: SmallVec<[NodeId; 8]> = smallvec![guard];
        while let Some(guard) = guards.pop() {
            match self.reader.ir.node(guard) {
                Node::And(parts) | Node::AndAlso(parts) => {
                    guards.extend(self.reader.ir.of(parts).iter().rev().copied());
                }
                _ => match self.reader.guard(self.pool, guard) {
                    Some(test) => tests.push(test),
                    None => {
                        self.value(guard);
                        // Where a comparison comes last in another guard, jumps lead behind it.
                        let node = self.reader.ir.node(guard);
                        let compares = matches!(node, Node::Call(Func::Cmp(_), _));
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
                },
            }
        }
    }
}

enum Task {
    Value(NodeId),
    Op(Op),
    /// A short circuit whose jump goes to where a later `Land` stands.
    Jump {
        and: bool,
        to: usize,
    },
    Land(usize),
    Build(NodeId, u32),
}

type Tasks = SmallVec<[Task; 8]>;

/// What is to be computed next, in this order.
fn value_all(tasks: &mut Tasks, parts: &[NodeId]) {
    tasks.extend(parts.iter().rev().map(|&part| Task::Value(part)));
}

impl Gen<'_> {
    /// Instructions that push the value of an expression.
    pub(crate) fn value(&mut self, root: NodeId) {
        let mut tasks: Tasks = smallvec![Task::Value(root)];
        let mut jumps: Vec<Vec<usize>> = Vec::new();
        while let Some(task) = tasks.pop() {
            match task {
                Task::Value(id) => self.node(id, &mut tasks, &mut jumps),
                Task::Op(op) => self.ops.push(op),
                Task::Jump { and, to } => {
                    jumps[to].push(self.ops.len());
                    self.ops
                        .push(if and { Op::AndAlso(0) } else { Op::OrElse(0) });
                }
                Task::Land(to) => self.land(&jumps[to]),
                Task::Build(id, waiting) => self.build(id, waiting),
            }
        }
    }

    fn land(&mut self, jumps: &[usize]) {
        let here = self.ops.len() as u32;
        for &jump in jumps {
            if let Op::AndAlso(to) | Op::OrElse(to) = &mut self.ops[jump] {
                *to = here;
            }
        }
    }

    fn node(&mut self, id: NodeId, tasks: &mut Tasks, jumps: &mut Vec<Vec<usize>>) {
        if let Some(operand) = self.direct(id) {
            return self.ops.push(Op::Push(operand));
        }
        match self.reader.ir.node(id) {
            Node::Const(_) | Node::Var(_) | Node::Object | Node::Bindings => {}
            Node::Call(func, parts) => {
                if let Some(test) = self.reader.value(self.pool, id) {
                    return self.ops.push(Op::Test(test));
                }
                let parts = self.reader.ir.of(parts);
                match *parts {
                    [a] => match self.direct(a) {
                        Some(a) => return self.ops.push(Op::CallOne(func, a)),
                        None => tasks.push(Task::Op(Op::Call(func, 1))),
                    },
                    [a, b] => match (self.direct(a), self.direct(b)) {
                        (Some(a), Some(b)) => return self.ops.push(Op::CallTwo(func, a, b)),
                        (None, Some(b)) => {
                            tasks.push(Task::Op(Op::CallTop(func, b)));
                            return tasks.push(Task::Value(a));
                        }
                        (Some(a), None) if matches!(func, Func::Cmp(_)) => {
                            tasks.push(Task::Op(Op::CallTop(func.turned(), a)));
                            return tasks.push(Task::Value(b));
                        }
                        _ => tasks.push(Task::Op(Op::Call(func, 2))),
                    },
                    _ => tasks.push(Task::Op(Op::Call(func, parts.len() as u8))),
                }
                value_all(tasks, parts);
            }
            Node::And(parts) => {
                tasks.push(Task::Op(Op::And(self.reader.ir.of(parts).len() as u32)));
                value_all(tasks, self.reader.ir.of(parts));
            }
            Node::Or(parts) => {
                tasks.push(Task::Op(Op::Or(self.reader.ir.of(parts).len() as u32)));
                value_all(tasks, self.reader.ir.of(parts));
            }
            Node::AndAlso(parts) => self.circuit(true, parts, tasks, jumps),
            Node::OrElse(parts) => self.circuit(false, parts, tasks, jumps),
            Node::Map(parts) if !self.is_written(id) => {
                let parts = self.reader.ir.of(parts);
                tasks.push(Task::Op(Op::MakeMap(parts.len() as u32 / 2)));
                value_all(tasks, parts);
            }
            Node::Tuple(_) | Node::List(_) | Node::Map(_) => {
                let waiting = self.waiting(id);
                tasks.push(Task::Build(id, waiting.len() as u32));
                value_all(tasks, &waiting);
            }
        }
    }

    fn circuit(
        &mut self,
        and: bool,
        parts: crate::ir::Parts,
        tasks: &mut Tasks,
        jumps: &mut Vec<Vec<usize>>,
    ) {
        let to = jumps.len();
        jumps.push(Vec::new());
        tasks.push(Task::Land(to));
        for (i, &part) in self.reader.ir.of(parts).iter().rev().enumerate() {
            if i > 0 {
                tasks.push(Task::Jump { and, to });
            }
            tasks.push(Task::Value(part));
        }
    }

    /// Whether a node is written part by part, rather than computed and then written.
    fn is_written(&self, id: NodeId) -> bool {
        match self.reader.ir.node(id) {
            Node::Tuple(_) | Node::List(_) => true,
            // Of two pairs with one key both values are computed, since either may fail.
            Node::Map(parts) => {
                let keys = self.reader.ir.of(parts).iter().step_by(2);
                keys.clone()
                    .all(|&key| self.reader.ir.constant(key).is_some())
                    && self.pairs(id).len() == 2 * keys.len()
            }
            _ => false,
        }
    }

    /// Whether a node must be computed before the term that it is a part of is written.
    fn is_computed(&self, id: NodeId) -> bool {
        !self.is_written(id) && self.operand(id).is_none()
    }

    /// As `operand`, with integers as such.
    fn direct(&self, id: NodeId) -> Option<Operand> {
        let operand = self.operand(id)?;
        if let Operand::Const(constant) = operand {
            let int = constant.fixed(self.pool).and_then(wire::int);
            return Some(int.map_or(operand, Operand::Int));
        }
        Some(operand)
    }

    fn operand(&self, id: NodeId) -> Option<Operand> {
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

    /// The computed nodes of a term to write, in the order in which writing meets them: a list's
    /// tail before its elements.
    fn waiting(&self, root: NodeId) -> SmallVec<[NodeId; 8]> {
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

    /// The keys and values of a map with constant keys, in the order of the encoding; fewer than it
    /// has if two keys are equal.
    fn pairs(&self, id: NodeId) -> Vec<NodeId> {
        let Node::Map(parts) = self.reader.ir.node(id) else {
            return Vec::new();
        };
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

    /// Writes a term whose computed parts lie on the stack, the first one met deepest.
    fn build(&mut self, root: NodeId, waiting: u32) {
        enum Part {
            Node(NodeId),
            Tail(Operand),
        }
        self.ops.push(Op::Build);
        let mut met = 0;
        let next = |met: &mut u32| {
            *met += 1;
            Operand::Stack(waiting - *met)
        };
        let mut parts: SmallVec<[Part; 8]> = smallvec![Part::Node(root)];
        while let Some(part) = parts.pop() {
            let id = match part {
                Part::Tail(operand) => {
                    self.ops.push(Op::ListTail(operand));
                    continue;
                }
                Part::Node(id) => id,
            };
            if self.is_computed(id) {
                let operand = next(&mut met);
                self.ops.push(Op::Put(operand));
                continue;
            }
            match self.reader.ir.node(id) {
                Node::Tuple(edges) => {
                    let edges = self.reader.ir.of(edges);
                    self.raw_head(tags::TUPLE, edges.len());
                    parts.extend(edges.iter().rev().map(|&edge| Part::Node(edge)));
                }
                Node::Map(_) => {
                    let pairs = self.pairs(id);
                    self.raw_head(tags::MAP, pairs.len() / 2);
                    parts.extend(pairs.into_iter().rev().map(Part::Node));
                }
                Node::List(edges) => {
                    let (elements, tail) = split_list(self.reader.ir.of(edges));
                    let count = elements.len();
                    let operand = if self.is_computed(tail) {
                        Some(next(&mut met))
                    } else {
                        self.operand(tail)
                    };
                    match operand {
                        Some(operand) => {
                            if self.list_head(count, operand) {
                                parts.push(Part::Tail(operand));
                            }
                        }
                        None => {
                            self.raw_head(tags::ILIST, count);
                            parts.push(Part::Node(tail));
                        }
                    }
                    parts.extend(elements.iter().rev().map(|&edge| Part::Node(edge)));
                }
                _ => self.put(id),
            }
        }
        self.ops.push(Op::Built(waiting));
    }

    fn put(&mut self, id: NodeId) {
        match self.operand(id) {
            Some(Operand::Const(Constant::Fixed(span))) => {
                self.pool.extend_from_within(span.range());
                self.raw(span.to - span.from);
            }
            Some(operand) => self.ops.push(Op::Put(operand)),
            None => {}
        }
    }

    /// Writes a list's head; whether a tail has to follow its elements.
    fn list_head(&mut self, count: usize, tail: Operand) -> bool {
        if let Operand::Const(Constant::Fixed(span)) = tail {
            if self.pool[span.range()] == [tags::NIL] {
                self.raw_head(tags::LIST, count);
                return false;
            }
        }
        self.ops.push(Op::ListHead(count as u32, tail));
        true
    }

    fn raw_head(&mut self, tag: u8, n: usize) {
        let from = self.pool.len();
        wire::push_head(self.pool, tag, n);
        self.raw(self.pool.len() - from);
    }

    /// Writes the last `len` bytes of the pool; joins them with those written just before, if they
    /// lie there.
    fn raw(&mut self, len: usize) {
        let to = self.pool.len();
        let from = to - len;
        match self.ops.last_mut() {
            Some(Op::Raw(span)) if span.to == from => span.to = to,
            _ => self.ops.push(Op::Raw(Span { from, to })),
        }
    }
}

/// A list's elements and its tail.
fn split_list(parts: &[NodeId]) -> (&[NodeId], NodeId) {
    match parts.split_last() {
        Some((tail, elements)) => (elements, *tail),
        None => (&[], 0),
    }
}
