//! Errors of match specifications.

use larder_term::Atom;
use std::fmt;

/// The reason why a match specification was refused, and the clause (counted from 0) that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompileError {
    /// The clause, counted from 0; `None` if the whole specification is wrong.
    pub clause: Option<usize>,
    /// The fault.
    pub what: Fault,
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(clause) = self.clause {
            // The text counts from 1, as other texts and positions do.
            write!(f, "clause {}: ", clause + 1)?;
        }
        self.what.fmt(f)
    }
}

impl std::error::Error for CompileError {}

/// The faults of a match specification. For a caller of `ets`, all of them are `badarg`, except
/// [`Fault::TooDeep`], which is `system_limit`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The specification isn't a list, or is empty.
    NotAList,
    /// The specification, a guard list or a body is an improper list.
    ImproperList,
    /// A clause isn't a tuple of three elements.
    NotAClause,
    /// The guards aren't a list.
    GuardsNotAList,
    /// The body is empty, or isn't a list.
    NoBody,
    /// A guard or a body contains a variable that the head doesn't bind.
    Unbound(u32),
    /// A tuple is neither a call nor a tuple in double braces.
    NotACall,
    /// There is no such function with this number of arguments.
    NoFunction(Atom, usize),
    /// `const` doesn't have exactly one argument.
    ConstArity,
    /// `and`, `or`, `andalso` or `orelse` has no arguments.
    NoArguments(Atom),
    /// A key of a map in the head is a variable or '_'.
    VariableMapKey,
    /// The number of a parameter isn't from 1 to 255.
    ParameterNumber(i64),
    /// A parameter is a whole head.
    ParameterAsHead,
    /// In a key of a map in the head, a parameter is within a map, or is the tail of a list.
    ParameterInMapKey,
    /// Expressions are nested more deeply than `ets` allows.
    TooDeep,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::NotAList => "a match specification is a list of one clause or more",
            Fault::ImproperList => {
                "a list of clauses, guards or body expressions ends in something other than []"
            }
            Fault::NotAClause => "a clause is a tuple of three: head, guards and body",
            Fault::GuardsNotAList => "the guards of a clause are a list",
            Fault::NoBody => "the body of a clause is a list of one expression or more",
            Fault::Unbound(variable) => {
                return write!(f, "variable ${variable} is not bound by the head")
            }
            Fault::NotACall => "a tuple is neither a call nor a tuple in double braces",
            Fault::NoFunction(name, arity) => {
                return write!(
                    f,
                    "no function {name} takes {arity} argument(s) in a match specification"
                );
            }
            Fault::ConstArity => "const takes one argument",
            Fault::NoArguments(name) => return write!(f, "{name} needs an argument"),
            Fault::VariableMapKey => "a key of a map in the head is a variable",
            Fault::ParameterNumber(number) => {
                return write!(
                    f,
                    "{{bind, {number}}} is no parameter: they are numbered from 1 to 255"
                )
            }
            Fault::ParameterAsHead => {
                "a parameter stands for a part of an object, not for a whole head"
            }
            Fault::ParameterInMapKey => {
                "in a key of a map in the head, a parameter is in a map or is the tail of a list"
            }
            Fault::TooDeep => "expressions are nested too deeply",
        })
    }
}

impl std::error::Error for Fault {}

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
