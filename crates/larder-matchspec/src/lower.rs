//! From the bytes of a guard or a body expression to nodes.
//!
//! 1. A work list holds what is to be visited and what is to be put together; results wait on a
//!    second stack. No recursion.
//! 2. Each level of nesting costs what it costs `ets` in stack, and what is over its limit is
//!    [`Fault::TooDeep`], as there. Long lists are not deep: only their elements' nesting counts
//!    (`ets` counts each element of a list as a level).
//! 3. An expression of constants alone is computed now, if it is small; one that fails is kept,
//!    since whether it fails a clause or becomes `'EXIT'` depends on where it stands.

use crate::{
    constant::{Constant, Span},
    error::Fault,
    fold,
    func::Func,
    ir::{Ir, Node, NodeId, Parts},
    raw,
    source::{Places, Source},
    wire::{self, Head},
};
use larder_term::{atoms, tags, Atom};
use smallvec::{smallvec, SmallVec};
use std::cmp::Ordering;

/// What a level of nesting costs, and how much may be spent: the proportions and the limit measured
/// of `ets` (3191 levels of calls or lists, 2279 of double braces, 1484 of maps).
const COST_CALL: u32 = 20;
const COST_TUPLE: u32 = 28;
const COST_MAP: u32 = 43;
const COST_LIMIT: u32 = 63_839;

/// Constants longer than this are put together when a row is, not copied into each expression
/// around them.
const FOLD_LIMIT: usize = 1024;

/// What a node is made of.
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

enum Task {
    Visit {
        at: usize,
        cost: u32,
    },
    /// The tail of a proper list.
    Nil,
    Join {
        form: Form,
        parts: usize,
    },
}

type Tasks = SmallVec<[Task; 4]>;
type Done = SmallVec<[NodeId; 8]>;

/// Where a clause's expressions find their variables.
pub(crate) struct Scope<'s> {
    /// The numbers of the head's variables, ascending; a variable's slot is its place here.
    pub(crate) variables: &'s [u32],
    /// The slot of the variable that is the whole head (`'$1'` alone).
    pub(crate) whole: Option<u32>,
}

/// Lowers expressions of one specification.
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
    /// The first fault met, from the left.
    pub(crate) fn expression(&mut self, at: usize) -> Result<NodeId, Fault> {
        let mut tasks: Tasks = smallvec![Task::Visit { at, cost: 0 }];
        let mut done = Done::new();
        while let Some(task) = tasks.pop() {
            match task {
                Task::Visit { at, cost } => {
                    if cost > COST_LIMIT {
                        return Err(Fault::TooDeep);
                    }
                    self.visit(at, cost, &mut tasks, &mut done)?;
                }
                Task::Nil => {
                    let nil = self.nil();
                    done.push(nil);
                }
                Task::Join { form, parts } => {
                    let node = self.join(form, &done[done.len() - parts..]);
                    done.truncate(done.len() - parts);
                    done.push(node);
                }
            }
        }
        Ok(done[0])
    }

    fn visit(
        &mut self,
        at: usize,
        cost: u32,
        tasks: &mut Tasks,
        done: &mut Done,
    ) -> Result<(), Fault> {
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
        let proper = matches!(self.source.head(at), Head::List(_));
        tasks.push(Task::Join {
            form,
            parts: parts.len() + usize::from(proper),
        });
        if proper {
            tasks.push(Task::Nil);
        }
        tasks.extend(parts.iter().rev().map(|&at| Task::Visit { at, cost }));
        Ok(())
    }

    fn nil(&mut self) -> NodeId {
        let span = self.intern(&[tags::NIL]);
        self.ir.add(Node::Const(span))
    }

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
        let slot = self
            .scope
            .variables
            .binary_search(&number)
            .map_err(|_| Fault::Unbound(number))?;
        if self.scope.whole == Some(slot as u32) {
            return Ok(Node::Object);
        }
        Ok(Node::Var(slot as u32))
    }

    /// A tuple: `{{…}}`, `{const,X}`, a form or a call.
    fn tuple(&self, at: usize) -> Result<Tuple, Fault> {
        let mut parts = self.source.parts(at);
        let Some(&first) = parts.first() else {
            return Err(Fault::NotACall);
        };
        if let (1, Some(inner)) = (parts.len(), self.source.tuple(first)) {
            return Ok(Tuple::Form(Form::Tuple, inner));
        }
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
        if wire::variable(name).is_some() {
            return Err(Fault::NotACall);
        }
        self.form(name, parts)
    }

    fn form(&self, name: Atom, parts: Places) -> Result<Tuple, Fault> {
        let form = match name {
            atoms::AND => Form::And,
            atoms::OR => Form::Or,
            atoms::ANDALSO => Form::AndAlso,
            atoms::ORELSE => Form::OrElse,
            _ => {
                let found = Func::find(name.text(), parts.len()).map(Form::Call);
                let form = found.ok_or(Fault::NoFunction(name, parts.len()))?;
                return Ok(Tuple::Form(form, parts));
            }
        };
        if parts.is_empty() {
            return Err(Fault::NoArguments(name));
        }
        Ok(Tuple::Form(form, parts))
    }

    /// A map's keys and values, by the keys' order: where two keys come to the same value, the
    /// greater one's pair is kept. (A parameter is there as `[]`.)
    fn pairs_in_order(&self, at: usize) -> Places {
        let parts = self.source.parts(at);
        let mut pairs: Vec<(usize, usize)> = parts
            .chunks_exact(2)
            .map(|pair| (pair[0], pair[1]))
            .collect();
        pairs.sort_by(|a, b| self.key_order(a.0, b.0));
        pairs
            .into_iter()
            .flat_map(|(key, value)| [key, value])
            .collect()
    }

    fn key_order(&self, a: usize, b: usize) -> Ordering {
        raw::view(self.source.term(a)).cmp_exact(raw::view(self.source.term(b)))
    }

    fn join(&mut self, form: Form, parts: &[NodeId]) -> NodeId {
        let edges = self.ir.parts(parts);
        let node = node_of(form, edges);
        let id = self.ir.add(node);
        if self.folds(form, parts) {
            self.fold(form, id).unwrap_or(id)
        } else {
            id
        }
    }

    fn folds(&self, form: Form, parts: &[NodeId]) -> bool {
        let pure = match form {
            Form::Call(func) => func.is_pure(),
            _ => true,
        };
        pure && self
            .constant_size(parts)
            .is_some_and(|size| size <= FOLD_LIMIT || self.all_leaves(parts))
    }

    fn constant_size(&self, parts: &[NodeId]) -> Option<usize> {
        parts
            .iter()
            .map(|&part| self.fixed(part).map(<[u8]>::len))
            .sum()
    }

    /// The bytes of a constant that is no argument.
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

    fn fold(&mut self, form: Form, id: NodeId) -> Option<NodeId> {
        let value = fold::constant(self.ir, self.pool, id)?;
        // A call may give far more than it was given, as shifts do: that is made when it is asked
        // for, and not kept.
        if matches!(form, Form::Call(_)) && value.len() > FOLD_LIMIT {
            return None;
        }
        let constant = self.intern(&value);
        Some(self.ir.add(Node::Const(constant)))
    }
}

enum Tuple {
    Constant(Constant),
    Form(Form, Places),
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
