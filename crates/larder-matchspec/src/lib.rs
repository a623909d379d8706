//! Match specifications, compiled once and run on stored bytes.
//!
//! A match specification is a list of clauses `{Head, [Guard], [Body]}`, as `ets:select/2` takes
//! it:
//!
//! ```text
//!  spec ──source──▶ places ──head──▶ steps          run: a cursor over the object's bytes
//!                      │
//!                      └──lower──▶ nodes ──gen──▶ instructions     run: a stack machine
//!                                    │
//!                                    └──plan──▶ the keys that can fit: keys, a range, all or none
//! ```
//!
//! [`Program::compile`] makes a [`Program`], which [`Program::run`] runs on an object without
//! decoding it: heads are matched against the bytes, guards and bodies take parts of them as they
//! are, and what a body builds is written as bytes again. What is asked of single elements is
//! tested on their bytes (see `test`); the machine does the rest. [`BoundKey`] takes a
//! specification apart that names the key of what it looks for. [`Program::plan`] says which keys
//! of a table can fit at all: not only bound keys and bound prefixes limit a scan, but guards on
//! the key do.
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
//! * A list literal of many thousand elements in a body is no deep nesting.
//! * Where a body's map has two keys that come to one value, and more than 32 pairs, the pair with
//!   the greater key expression is kept.

#![deny(unsafe_code)]

mod body;
mod bound;
mod builtins;
mod error;
mod func;
mod gen;
mod head;
mod ir;
mod limits;
mod lower;
mod machine;
mod maps;
mod plan;
mod program;
#[allow(unsafe_code)]
mod raw;
mod replace;
mod row;
mod source;
mod steps;
mod test;
mod value;
mod wire;

pub use bound::{is_constant, set_exact_map_keys, BoundKey};
pub use error::{CompileError, Fault};
pub use plan::{KeyOrder, Plan};
pub use program::{compile_pattern, Context, Outcome, Pattern, Program};
pub use value::Scratch;
