//! What can be wrong with a match specification.

use larder_term::Atom;

/// Why a match specification was refused, and in which clause (counted from 0) where one clause is
/// to blame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{what}", place(*.clause))]
pub struct CompileError {
    /// The clause, counted from 0; `None` where the specification as a whole is at fault.
    pub clause: Option<usize>,
    /// The fault.
    pub what: Fault,
}

/// The faults of a match specification. All but [`Fault::TooDeep`] are `badarg` to a caller of
/// `ets`; that one is `system_limit`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The specification is no list, or an empty one.
    #[error("a match specification is a list of one clause or more")]
    NotAList,
    /// The specification, a guard list or a body is an improper list.
    #[error("a list of clauses, guards or body expressions ends in something other than []")]
    ImproperList,
    /// A clause is no tuple of three.
    #[error("a clause is a tuple of three: head, guards and body")]
    NotAClause,
    /// The guards are no list.
    #[error("the guards of a clause are a list")]
    GuardsNotAList,
    /// The body is empty, or no list.
    #[error("the body of a clause is a list of one expression or more")]
    NoBody,
    /// A guard or a body names a variable that the head does not bind.
    #[error("variable ${0} is not bound by the head")]
    Unbound(u32),
    /// A tuple that is neither a call nor, in double braces, a tuple to build.
    #[error("a tuple is neither a call nor a tuple in double braces")]
    NotACall,
    /// No such function, or not with so many arguments.
    #[error("no function {0} takes {1} argument(s) in a match specification")]
    NoFunction(Atom, usize),
    /// `{const,X}` with more or fewer arguments than one.
    #[error("const takes one argument")]
    ConstArity,
    /// `{'and'}` and its like without arguments.
    #[error("{0} needs an argument")]
    NoArguments(Atom),
    /// A variable, or '_', as a key of a map in the head.
    #[error("a key of a map in the head is a variable")]
    VariableMapKey,
    /// A parameter that is not numbered from 1 to 255.
    #[error("{{bind, {0}}} is no parameter: they are numbered from 1 to 255")]
    ParameterNumber(i64),
    /// A parameter in the place of a whole head.
    #[error("a parameter stands for a part of an object, not for a whole head")]
    ParameterAsHead,
    /// A parameter within a map, or as the tail of a list, in a key of a map in the head.
    #[error("in a key of a map in the head, a parameter is in a map or is the tail of a list")]
    ParameterInMapKey,
    /// Expressions nested deeper than `ets` allows.
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
