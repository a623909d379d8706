//! The data structures of the published studies of ETS, as indexes. Use them to compare them with
//! the default structures, and with each other, on your own data.
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
//! assert!(index.update(&guard, key, &mut |_, new| {
//!     new.extend_from_slice(b"41");
//!     Change::Put
//! }));
//! let mut value = Vec::new();
//! assert!(index.get(&guard, key, &mut value));
//! assert_eq!(value, b"41");
//! ```
//!
//! # How it is built
//!
//! ```text
//!   UniqueAdapter, MultiAdapter       indexes with one value per key, and with many
//!         |
//!      Scheme                          concurrent: OneLock, Stripes, CaTree, SkipList, RelaxedAvl,
//!         |                                        LfCaTree, ListHash
//!     Sequential                       for one thread: Avl, Btree, LinearHash, Chained, JudyHash,
//!                                                      JudyText
//! ```
//!
//! A structure maps a *position* (the key, or its hash and the key) to a machine word. In an index
//! with one value per key, the word owns the value. In an index with many, it owns all values of
//! the key, in order of arrival. Hash-ordered structures keep their buckets in the order of the top
//! bits of the hash. So a scan can resume at a position, even if the table has grown or shrunk.
//!
//! The guarantees for concurrent readers are those of [`larder_index`], with two differences.
//! Readers take locks if the structure has them. A batch of a scan has the entries that one lock
//! covers, or those of one part.
//!
//! # Adding a structure
//!
//! 1. Write a file with a type that implements [`Sequential`]; or [`Scheme`], if it is concurrent
//!    by itself.
//! 2. Add an entry to `registry.rs`. The suites run over all structures that are listed there.
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
mod persistent_tree;
mod position;
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
