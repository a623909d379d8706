//! Larder for the JVM: the native methods of `larder.Native` in `bindings/jvm`.
//!
//! Everything here is translation: numbers and bytes of Java to terms, results to numbers and
//! bytes, errors to exceptions. What a method does, the engine does. Views, iterators and codecs
//! are written in Java.
//!
//! # Rules
//!
//! * Java knows a table by a number, never by an address. A call with the number of a closed table
//!   throws an exception, whatever other threads do at that moment ([`handles`]).
//! * No panic leaves the library.
//! * A native method calls Java only to throw the exception with which it ends. So it never waits
//!   for a function of the caller, and such a function may use and close any table.
//! * What Java passes is copied before it is examined. Another thread may be writing the array or
//!   the buffer, so nothing is read from it twice.
//!
//! # How it is built
//!
//! | module | what it has |
//! |---|---|
//! | `failure` | what a method may fail with, the exceptions, the guard of each entry |
//! | `item` | keys and values: an integer or bytes, as terms and from them |
//! | `wire` | several of them in one array of bytes |
//! | `handles` | tables, snapshots, transactions and feeds by number |
//! | `table` | operations by key |
//! | `scan` | ranges, ranks and match specifications |
//! | `transaction` | transactions, and lists of conditional operations |
//! | `feed` | subscriptions, and which of them have something |
//! | `arrays` | Java's arrays and buffers |
//! | `exceptions` | classes that have to be known before Java runs out of memory |
//! | `natives` | the native methods |

#![deny(unsafe_code)]

#[allow(unsafe_code)]
mod arrays;
mod exceptions;
mod failure;
mod feed;
#[allow(unsafe_code)]
mod handles;
#[allow(unsafe_code)]
mod item;
#[allow(unsafe_code)]
mod natives;
mod scan;
mod table;
mod transaction;
mod wire;

/// Rows are freed by other threads than those that took their memory, which the C library's
/// allocator would seldom give back to the system.
#[global_allocator]
static HEAP: larder::Allocator = larder::Allocator;
