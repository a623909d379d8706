//! The structures of the published studies of ETS, as indexes.
#![deny(unsafe_code)]

mod avl;
mod choices;
mod counts;
mod cut;
mod fill;
mod many;
mod one;
mod one_lock;
mod position;
#[allow(unsafe_code)]
mod raw;
mod registry;
mod scheme;
mod sequential;
mod slab;
mod word;

pub use avl::Avl;
pub use choices::{BuildError, Choice, Range, Value};
pub use cut::Cut;
pub use many::Many;
pub use one::One;
pub use one_lock::OneLock;
pub use position::{Order, Position};
pub use registry::{build_multi, build_unique, check, structures, Structure};
pub use scheme::{Changer, Old, Reader, Scheme};
pub use sequential::{Act, Actor, Divisible, Sequential, Visitor};
pub use word::{Crowd, Object, Word};
