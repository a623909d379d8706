//! Errors of match specifications.

use larder_term::Atom;

/// The reason why a match specification was refused, and the clause (counted from 0) that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{what}", place(*.clause))]
pub struct CompileError {
    /// The clause, counted from 0; `None` if the whole specification is wrong.
    pub clause: Option<usize>,
    /// The fault.
    pub what: Fault,
}

/// The faults of a match specification. For a caller of `ets`, all of them are `badarg`, except
/// [`Fault::TooDeep`], which is `system_limit`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The specification isn't a list, or is empty.
    #[error("a match specification is a list of one clause or more")]
    NotAList,
    /// The specification, a guard list or a body is an improper list.
    #[error("a list of clauses, guards or body expressions ends in something other than []")]
    ImproperList,
    /// A clause isn't a tuple of three elements.
    #[error("a clause is a tuple of three: head, guards and body")]
    NotAClause,
    /// The guards aren't a list.
    #[error("the guards of a clause are a list")]
    GuardsNotAList,
    /// The body is empty, or isn't a list.
    #[error("the body of a clause is a list of one expression or more")]
    NoBody,
    /// A guard or a body contains a variable that the head doesn't bind.
    #[error("variable ${0} is not bound by the head")]
    Unbound(u32),
    /// A tuple is neither a call nor a tuple in double braces.
    #[error("a tuple is neither a call nor a tuple in double braces")]
    NotACall,
    /// There is no such function with this number of arguments.
    #[error("no function {0} takes {1} argument(s) in a match specification")]
    NoFunction(Atom, usize),
    /// `const` doesn't have exactly one argument.
    #[error("const takes one argument")]
    ConstArity,
    /// `and`, `or`, `andalso` or `orelse` has no arguments.
    #[error("{0} needs an argument")]
    NoArguments(Atom),
    /// A key of a map in the head is a variable or '_'.
    #[error("a key of a map in the head is a variable")]
    VariableMapKey,
    /// The number of a parameter isn't from 1 to 255.
    #[error("{{bind, {0}}} is no parameter: they are numbered from 1 to 255")]
    ParameterNumber(i64),
    /// A parameter is a whole head.
    #[error("a parameter stands for a part of an object, not for a whole head")]
    ParameterAsHead,
    /// In a key of a map in the head, a parameter is within a map, or is the tail of a list.
    #[error("in a key of a map in the head, a parameter is in a map or is the tail of a list")]
    ParameterInMapKey,
    /// Expressions are nested more deeply than `ets` allows.
    #[error("expressions are nested too deeply")]
    TooDeep,
}

impl Fault {
    pub(crate) fn in_clause(self, clause: usize) -> CompileError {
        CompileError {
            clause: Some(clause),
            what: self,
        }
    }

    pub(crate) fn overall(self) -> CompileError {
        CompileError {
            clause: None,
            what: self,
        }
    }
}

fn place(clause: Option<usize>) -> String {
    clause.map_or_else(String::new, |n| format!("clause {n}: "))
}
