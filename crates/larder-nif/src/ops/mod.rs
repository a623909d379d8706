//! The functions that Erlang calls, by what they are about. Each takes its arguments apart, asks
//! the engine, and makes a term of the answer.
//!
//! | file | functions |
//! |---|---|
//! | [`single`] | on the objects of one key |
//! | [`key_batch`] | on several keys in one call |
//! | [`insert`] | lists of objects |
//! | [`bounds`] | how long objects live |
//! | [`update`] | counters and elements |
//! | [`traverse`] | from key to key, folds |
//! | [`rank`] | by rank |
//! | [`index`] | secondary indexes |
//! | [`select`], [`spec`] | scans by match specifications, and these compiled |
//! | [`admin`], [`options`], [`info`], [`structures`] | tables as wholes |
//! | [`transaction`] | transactions |
//! | [`feed`] | what changes in a table |
//! | [`files`] | saving and loading |
//! | [`snapshot`] | snapshots, and what differs between two |

pub mod admin;
pub mod bounds;
pub mod commit;
pub mod feed;
pub mod files;
pub mod index;
pub mod info;
pub mod insert;
pub mod key_batch;
pub mod maps;
pub mod options;
pub mod rank;
pub mod select;
pub mod single;
pub mod snapshot;
pub mod spec;
pub mod structures;
pub mod transaction;
pub mod traverse;
pub mod trees;
pub mod update;
