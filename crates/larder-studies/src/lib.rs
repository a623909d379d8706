//! The structures of the published studies of ETS, as indexes: to compare with the defaults, and
//! with each other, on one's own data.
//!
//! ```
//! use larder_index::{pin, Change, Key};
//! use larder_studies::{build_unique, structures, Order, Value};
//!
//! for structure in structures() {
//!     println!("{}: {}", structure.name, structure.about);
//! }
//! let options = [("m".to_owned(), Value::Int(32))];
//! let index = build_unique("btree", &options, Order::Key).unwrap();
//! let (guard, key) = (pin(), Key { bytes: b"ann", hash: 0 });
//! assert!(index.update(&guard, key, &mut |_, _| Change::Put(b"41")));
//! let mut value = Vec::new();
//! assert!(index.get(&guard, key, &mut value));
//! assert_eq!(value, b"41");
//! ```
//!
//! # How it is built
//!
//! ```text
//!   UniqueAdapter, MultiAdapter       indexes with one value under a key, and with many
//!         |
//!      Scheme                          shared by threads: OneLock, Stripes, CaTree, SkipList, RelaxedAvl, LfCaTree, ListHash
//!         |
//!     Sequential                       for one thread: Avl, Btree, LinearHash, Chained, JudyHash, JudyText
//! ```
//!
//! A structure maps a *position* (the key, or its hash and the key) to a machine word. In an index
//! with one value under a key the word owns the value, in one with many it owns them all, in order
//! of arrival. Hash-ordered structures keep their buckets in the order of the hash's top bits, so
//! that a scan goes on where it was after the table grew or shrank.
//!
//! What a concurrent reader may see is what [`larder_index`] says of its own; but readers take
//! locks where the structure has some, and a batch is what lies together: all, under one lock, or
//! the entries of one part.
//!
//! # To add one
//!
//! A file with a type that implements [`Sequential`] (or [`Scheme`], if it is shared in a way of
//! its own), and an entry in `registry.rs`. The suites run over all that are listed there.
#![deny(unsafe_code)]

mod address;
mod avl;
mod btree;
mod catree;
mod chained;
mod chains;
mod choices;
mod counts;
mod cut;
mod fill;
mod judy_hash;
mod judy_text;
mod key_locks;
mod lfcatree;
mod linear_hash;
mod list;
mod list_hash;
mod lockfree_hash;
mod multi_adapter;
mod one_lock;
mod position;
mod pure;
#[allow(unsafe_code)]
mod raw;
mod registry;
mod relaxed_avl;
mod scheme;
mod sequential;
mod skiplist;
mod slab;
mod split_ordered;
mod stripes;
mod unique_adapter;
mod word;

pub use avl::Avl;
pub use btree::Btree;
pub use catree::{Adaptation, Adapted, BaseNow, CaTree, Watcher};
pub use chained::Chained;
pub use choices::{BuildError, Choice, Range, Value};
pub use cut::Cut;
pub use judy_hash::JudyHash;
pub use judy_text::{JudyText, Strings};
pub use lfcatree::LfCaTree;
pub use linear_hash::LinearHash;
pub use list_hash::{Buckets, ListHash};
pub use lockfree_hash::FixedBuckets;
pub use multi_adapter::MultiAdapter;
pub use one_lock::OneLock;
pub use position::{Order, Position};
pub use registry::{build_multi, build_unique, check, named, structures, Structure};
pub use relaxed_avl::{RelaxedAvl, Snapshot};
pub use scheme::{Changer, Old, Reader, Scheme};
pub use sequential::{Act, Actor, Divisible, Sequential, Visitor};
pub use skiplist::SkipList;
pub use split_ordered::SplitOrder;
pub use stripes::Stripes;
pub use unique_adapter::UniqueAdapter;
pub use word::{Object, ValueList, Word};
