//! Lowering: from the encoded terms of guards and body expressions to nodes (`ir`).
//!
//! 1. There is no recursion. A stack of tasks holds the expressions to visit and the nodes to join;
//!    a second stack holds the finished nodes that wait to be joined.
//! 2. Each level of nesting costs the stack space that it costs `ets`. An expression above the
//!    limit of `ets` is [`Fault::TooDeep`], as there. A long list is not deep: only the nesting of
//!    its elements counts (`ets` counts each element of a list as a level).
//! 3. Constant folding: an expression of constants alone is evaluated at once if it is small. An
//!    expression that fails is kept, because whether it fails the clause or becomes `'EXIT'`
//!    depends on where it is.

use crate::{
    constant::{Constant, Span},
    error::Fault,
    fold,
    func::Func,
    ir::{Ir, Node, NodeId, Parts},
    raw,
    source::{Offsets, Source},
    wire::{self, Head},
};
use larder_term::{atoms, tags, Atom};
use smallvec::{smallvec, SmallVec};
use std::cmp::Ordering;

/// The cost of a level of nesting and the limit of the sum. Both reproduce what was measured of
/// `ets`: it accepts 3191 levels of calls or lists, 2279 of double braces and 1484 of maps.
const COST_CALL: u32 = 20;
const COST_TUPLE: u32 = 28;
const COST_MAP: u32 = 43;
const COST_LIMIT: u32 = 63_839;

/// Terms longer than this are not folded. They are built for each row instead, because folding
/// would copy them into the constant of every expression around them.
const FOLD_LIMIT: usize = 1024;

/// The kind of a node that has parts.
#[derive(Clone, Copy)]
enum Form {
    Tuple,
    List,
    Map,
    Call(Func),
    And,
    Or,
    AndAlso,
    OrElse,
}

/// An entry of the stack of tasks.
enum LowerTask {
    /// Lower the expression at this offset, whose surroundings cost this much.
    Visit { at: usize, cost: u32 },
    /// Emit the tail of a proper list.
    Nil,
    /// Join the last nodes of the second stack into one.
    Join { form: Form, parts: usize },
}

type LowerTasks = SmallVec<[LowerTask; 4]>;
type DoneNodes = SmallVec<[NodeId; 8]>;

/// The variables that a clause's expressions may use.
pub(crate) struct Scope<'s> {
    /// The numbers of the head's variables in ascending order. The slot of a variable is its index
    /// here.
    pub(crate) variables: &'s [u32],
    /// The slot of the variable that is bound to the whole object, if the head is `'$1'` alone.
    pub(crate) whole: Option<u32>,
}

/// Lowers the expressions of one clause.
pub(crate) struct Lowering<'a, 's> {
    pub(crate) source: &'s Source<'a>,
    pub(crate) ir: &'s mut Ir,
    pub(crate) pool: &'s mut Vec<u8>,
    pub(crate) scope: Scope<'s>,
}

impl Lowering<'_, '_> {
    /// Lowers the expression at `at`.
    ///
    /// # Errors
    /// The leftmost fault.
    pub(crate) fn expression(&mut self, at: usize) -> Result<NodeId, Fault> {
        // The cost is that of the levels above, so it grows with the nesting.
        let mut tasks: LowerTasks = smallvec![LowerTask::Visit { at, cost: 0 }];
        let mut done = DoneNodes::new();
        while let Some(task) = tasks.pop() {
            match task {
                LowerTask::Visit { at, cost } => {
                    if cost > COST_LIMIT {
                        return Err(Fault::TooDeep);
                    }
                    self.visit(at, cost, &mut tasks, &mut done)?;
                }
                LowerTask::Nil => {
                    let nil = self.nil();
                    done.push(nil);
                }
                LowerTask::Join { form, parts } => {
                    // The parts of a node are the last ones that were finished.
                    let node = self.join(form, &done[done.len() - parts..]);
                    done.truncate(done.len() - parts);
                    done.push(node);
                }
            }
        }
        Ok(done[0])
    }

    /// Visits one expression. A leaf is finished at once. Otherwise the tasks for its parts and the
    /// task that joins them are pushed, the latter first, so that it comes up last.
    fn visit(
        &mut self,
        at: usize,
        cost: u32,
        tasks: &mut LowerTasks,
        done: &mut DoneNodes,
    ) -> Result<(), Fault> {
        // The kind of the term, its parts, and the cost of its level.
        let (form, parts, cost) = match self.source.head(at) {
            Head::Leaf => {
                let node = self.leaf(at)?;
                done.push(self.ir.add(node));
                return Ok(());
            }
            Head::List(_) | Head::Improper(_) => {
                (Form::List, self.source.parts(at), cost + COST_CALL)
            }
            Head::Map(_) => (Form::Map, self.pairs_in_order(at), cost + COST_MAP),
            Head::Tuple(_) => match self.tuple(at)? {
                Tuple::Constant(constant) => {
                    done.push(self.ir.add(Node::Const(constant)));
                    return Ok(());
                }
                Tuple::Form(form, parts) => {
                    let level = if matches!(form, Form::Tuple) {
                        COST_TUPLE
                    } else {
                        COST_CALL
                    };
                    (form, parts, cost + level)
                }
            },
        };
        // A list node has its tail as the last part. The source does not name that of a proper
        // list.
        let proper = matches!(self.source.head(at), Head::List(_));
        tasks.push(LowerTask::Join {
            form,
            parts: parts.len() + usize::from(proper),
        });
        if proper {
            tasks.push(LowerTask::Nil);
        }
        // Tasks are popped from the end, so the leftmost part is visited first.
        tasks.extend(parts.iter().rev().map(|&at| LowerTask::Visit { at, cost }));
        Ok(())
    }

    fn nil(&mut self) -> NodeId {
        let span = self.intern(&[tags::NIL]);
        self.ir.add(Node::Const(span))
    }

    /// Adds a constant to the pool.
    fn intern(&mut self, bytes: &[u8]) -> Constant {
        let from = self.pool.len();
        self.pool.extend_from_slice(bytes);
        Constant::Fixed(Span {
            from,
            to: self.pool.len(),
        })
    }

    /// A term without parts: a variable or a constant.
    fn leaf(&self, at: usize) -> Result<Node, Fault> {
        let constant = Node::Const(self.source.constant(at));
        let Some(atom) = self.source.atom(at) else {
            return Ok(constant);
        };
        match atom {
            atoms::DOLLAR_UNDERSCORE => return Ok(Node::Object),
            atoms::DOLLAR_DOLLAR => return Ok(Node::Bindings),
            _ => {}
        }
        let Some(number) = wire::variable(atom) else {
            return Ok(constant);
        };
        // A variable in a guard must be one of the head's.
        let slot = self
            .scope
            .variables
            .binary_search(&number)
            .map_err(|_| Fault::Unbound(number))?;
        // The head is one variable, which stands for the whole object.
        if self.scope.whole == Some(slot as u32) {
            return Ok(Node::Object);
        }
        Ok(Node::Var(slot as u32))
    }

    /// Reads a tuple: `{{…}}`, a parameter, `{const,X}`, a boolean form or a call.
    fn tuple(&self, at: usize) -> Result<Tuple, Fault> {
        let mut parts = self.source.parts(at);
        // `{}` is no call. The empty tuple is written `{{}}`.
        let Some(&first) = parts.first() else {
            return Err(Fault::NotACall);
        };
        // Double braces: the expressions of a tuple.
        if let (1, Some(inner)) = (parts.len(), self.source.tuple(first)) {
            return Ok(Tuple::Form(Form::Tuple, inner));
        }
        // The same with an argument in place of the inner tuple.
        if let (1, Some(_)) = (parts.len(), self.source.argument(first)) {
            return Ok(Tuple::Constant(self.source.constant(first)));
        }
        let name = self.source.atom(first).ok_or(Fault::NotACall)?;
        parts.remove(0);
        if name == atoms::CONST {
            let [only] = parts[..] else {
                return Err(Fault::ConstArity);
            };
            return Ok(Tuple::Constant(self.source.constant(only)));
        }
        // A variable can't be called.
        if wire::variable(name).is_some() {
            return Err(Fault::NotACall);
        }
        self.form(name, parts)
    }

    /// A boolean form, which takes any number of operands but none, or a call of a function with
    /// this number of arguments.
    fn form(&self, name: Atom, parts: Offsets) -> Result<Tuple, Fault> {
        let form = match name {
            atoms::AND => Form::And,
            atoms::OR => Form::Or,
            atoms::ANDALSO => Form::AndAlso,
            atoms::ORELSE => Form::OrElse,
            _ => {
                // The number of operands belongs to the name, as in Erlang.
                let found = Func::find(name.text(), parts.len()).map(Form::Call);
                let form = found.ok_or(Fault::NoFunction(name, parts.len()))?;
                return Ok(Tuple::Form(form, parts));
            }
        };
        // `{'and'}` without operands is an error in `ets`, too.
        if parts.is_empty() {
            return Err(Fault::NoArguments(name));
        }
        Ok(Tuple::Form(form, parts))
    }

    /// The keys and values of a map, sorted by the keys' source. If two key expressions have the
    /// same value, the pair of the later one is kept. (A parameter sorts as `[]`.)
    fn pairs_in_order(&self, at: usize) -> Offsets {
        let parts = self.source.parts(at);
        let mut pairs: Vec<(usize, usize)> = parts
            .chunks_exact(2)
            .map(|pair| (pair[0], pair[1]))
            .collect();
        // Stable, so that the later one of two equal keys stays the later one.
        pairs.sort_by(|a, b| self.key_order(a.0, b.0));
        pairs
            .into_iter()
            .flat_map(|(key, value)| [key, value])
            .collect()
    }

    fn key_order(&self, a: usize, b: usize) -> Ordering {
        raw::view(self.source.term(a)).cmp_exact(raw::view(self.source.term(b)))
    }

    /// Makes a node of its parts and folds it if it is constant.
    fn join(&mut self, form: Form, parts: &[NodeId]) -> NodeId {
        let edges = self.ir.parts(parts);
        let node = node_of(form, edges);
        let id = self.ir.add(node);
        // A folded node replaces the call by its value.
        if self.folds(form, parts) {
            self.fold(form, id).unwrap_or(id)
        } else {
            id
        }
    }

    /// Whether a node is to be folded: it has no side effects, its parts are constants, and they
    /// are small or are not themselves built of parts.
    fn folds(&self, form: Form, parts: &[NodeId]) -> bool {
        // A call that has an effect, or reads the process, is never computed beforehand.
        let pure = match form {
            Form::Call(func) => func.is_pure(),
            _ => true,
        };
        pure && self
            .constant_size(parts)
            .is_some_and(|size| size <= FOLD_LIMIT || self.all_leaves(parts))
    }

    /// The size of the parts in bytes, if all of them are constants.
    fn constant_size(&self, parts: &[NodeId]) -> Option<usize> {
        parts
            .iter()
            .map(|&part| self.fixed(part).map(<[u8]>::len))
            .sum()
    }

    /// The bytes of a node that is a constant of the program, not an argument.
    fn fixed(&self, id: NodeId) -> Option<&[u8]> {
        self.ir.constant(id)?.fixed(self.pool)
    }

    fn all_leaves(&self, parts: &[NodeId]) -> bool {
        let leaf = |part: &NodeId| {
            self.fixed(*part)
                .is_some_and(|bytes| wire::open(bytes).0 == Head::Leaf)
        };
        parts.iter().all(leaf)
    }

    /// Evaluates a node, and returns the constant unless the evaluation fails.
    fn fold(&mut self, form: Form, id: NodeId) -> Option<NodeId> {
        let value = fold::constant(self.ir, self.pool, id)?;
        // A call may return far more than it was given, as `bsl` does. Such a value is computed for
        // each row and not kept.
        if matches!(form, Form::Call(_)) && value.len() > FOLD_LIMIT {
            return None;
        }
        let constant = self.intern(&value);
        Some(self.ir.add(Node::Const(constant)))
    }
}

/// The meaning of a tuple in an expression.
enum Tuple {
    Constant(Constant),
    Form(Form, Offsets),
}

fn node_of(form: Form, parts: Parts) -> Node {
    match form {
        Form::Tuple => Node::Tuple(parts),
        Form::List => Node::List(parts),
        Form::Map => Node::Map(parts),
        Form::Call(func) => Node::Call(func, parts),
        Form::And => Node::And(parts),
        Form::Or => Node::Or(parts),
        Form::AndAlso => Node::AndAlso(parts),
        Form::OrElse => Node::OrElse(parts),
    }
}
