//! Match specifications, compiled once and run on stored bytes.
//!
//! A match specification is a list of clauses `{Head, [Guard], [Body]}`, as `ets:select/2` takes
//! it. The crate has a module for each of the steps by which a specification becomes a program and
//! a plan:
//!
//! ```text
//!  spec ──template──▶ template ──head──▶ tests, steps ──────────────────┐
//!            │           │                                              ├──▶ code
//!            │           └──lower──▶ nodes ──gen──▶ tests, instructions ┘
//!            │                         │
//!            ╰─▶ arguments             └──demand──▶ demand
//!
//!  code + arguments = program                 demand + arguments ──plan──▶ plan
//! ```
//!
//! A specification is split into a [`Template`] and [`Arguments`], the constants that the template
//! leaves out. A template is compiled to [`Code`]. A [`Program`] is code with arguments. So a host
//! that caches code by template compiles nothing for a specification that differs from an earlier
//! one in constants alone. A host reads templates directly off its own terms ([`Terms`]), in one
//! pass and without encoding the specification. [`Program::compile`] reads them off the bytes of a
//! specification.
//!
//! A [`Prepared`] specification has parameters: some of its arguments are supplied when it is
//! bound.
//!
//! [`Program::run`] runs on an object without decoding it. Heads are matched against the bytes,
//! guards and bodies use parts of the bytes in place, and the term that a body builds is written as
//! bytes again. Conditions on single elements are tested on their bytes (see `test`), and the
//! machine evaluates all others.
//!
//! [`Program::bound_key`] is the key that a specification binds. [`Program::plan`] says which keys
//! of a table can match at all: a scan is limited by bound keys, by bound prefixes of keys, and by
//! guards on the key.
//!
//! # Examples
//!
//! ```
//! use larder_matchspec::{Context, Outcome, Program, Scratch};
//! use larder_term::{atoms, Term};
//!
//! let spec: Term = "[{{'$1','$2'},[{'>','$2',10}],[{{'$1',{'+','$2',1}}}]}]".parse().unwrap();
//! let program = Program::compile(spec.as_ref()).unwrap();
//!
//! let me = Term::pid(larder_term::Node::Local, 1, 0);
//! let context = Context { self_pid: me.as_ref(), node: atoms::NONODE };
//! let mut scratch = Scratch::new();
//! let row: Term = "{apple,41}".parse().unwrap();
//! match program.run_term(row.as_ref(), &context, &mut scratch) {
//!     Some(Outcome::Term(term)) => assert_eq!(term.to_string(), "{apple,42}"),
//!     other => panic!("{other:?}"),
//! }
//! ```
//!
//! # What differs from `ets`
//!
//! * The functions of the newest OTP release are there on every one (`floor`, `ceil`, `max`, `min`,
//!   `tuple_size`, `is_boolean`, `is_bitstring`, `is_function/2`).
//! * A list literal of many thousand elements in a body doesn't count as deep nesting.
//! * If a map in a body has more than 32 pairs, and two of its key expressions have the same value,
//!   the pair with the greater key expression is kept.

#![deny(unsafe_code)]

mod body;
mod clause;
mod closed;
mod code;
mod compare;
mod constant;
mod demand;
mod error;
mod filter;
mod fold;
mod func;
mod gen;
mod head;
mod host;
mod ir;
mod key_bounds;
mod key_prefix;
mod key_proof;
mod limits;
mod lower;
mod machine;
mod map_search;
mod maps;
mod matcher;
mod outcome;
mod parameters;
mod plan;
mod program;
#[allow(unsafe_code)]
mod raw;
mod reads;
mod replace;
mod row;
mod source;
mod steps;
mod template;
mod terms;
mod test;
mod value;
mod wire;

pub use body::{BuiltPart, BuiltTerm, TermRun};
pub use code::Code;
pub use constant::{Arguments, Class, LONGEST_PLAIN};
pub use error::{CompileError, Fault};
pub use filter::{Filter, Verdict};
pub use host::{set_exact_map_keys, set_native_records};
pub use limits::KeyAccess;
pub use matcher::Matcher;
pub use outcome::{Context, Known, Outcome, PatternResult, Shown};
pub use parameters::{Prepared, Unbound, Value, Values, WrongCount};
pub use plan::Plan;
pub use program::{compile_pattern, Program};
pub use template::Template;
pub use terms::{ArgumentTerms, MapPairs, TermShape, Terms};
pub use value::Scratch;
