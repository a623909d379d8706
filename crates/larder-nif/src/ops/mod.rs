//! The functions that Erlang calls, by what they are about. Each takes its arguments apart, asks
//! the engine, and makes a term of the answer.

pub mod admin;

pub mod files;
pub mod info;
pub mod insert;
pub mod many;
pub mod options;
pub mod select;

pub mod single;
pub mod spec;
pub mod structures;
pub mod traverse;
pub mod update;
