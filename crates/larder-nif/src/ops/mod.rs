//! The functions that Erlang calls, by topic. Each reads its arguments, calls the engine, and makes
//! a term of the result.
//!
//! | file | functions |
//! |---|---|
//! | [`single`] | on the objects of one key |
//! | [`key_batch`] | on several keys in one call |
//! | [`insert`] | lists of objects |
//! | [`bounds`] | the time that objects live |
//! | [`update`] | counters and elements |
//! | [`maps`], [`trees`] | maps in objects; changing large ones |
//! | [`traverse`] | traversals by key, folds |
//! | [`rank`] | by rank |
//! | [`index`] | secondary indexes |
//! | [`select`], [`spec`] | scans by match specifications, and compiling these |
//! | [`admin`], [`options`], [`info`], [`structures`] | whole tables |
//! | [`transaction`] | transactions |
//! | [`commit`] | lists of operations that take effect together or not at all |
//! | [`feed`] | feeds of changes |
//! | [`files`] | saving and loading |
//! | [`snapshot`] | snapshots, and differences between them |

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
