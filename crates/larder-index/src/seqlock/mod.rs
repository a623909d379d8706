//! The seqlock of leaves: memory that many threads read while one writes to it.
//!
//! # The protocol
//!
//! The content of a leaf consists of atomic words, so an optimistic read is no data race in the
//! sense of the language. The leaf's *version* (bit 0: locked, bit 1: obsolete, above: a count of
//! changes) tells a reader whether what it has read is consistent:
//!
//! * **L1** A writer takes the lock (compare-exchange, `Acquire`), followed by a `Release` fence.
//!   It then writes words `Relaxed`.
//! * **L2** It unlocks by storing (`Release`) a greater count, or the same one if it has changed
//!   nothing.
//! * **R1** A reader loads the version (`Acquire`). This pairs with L2, so the reader sees
//!   everything that was written before. It reads words `Relaxed`.
//! * **R2** Then it executes an `Acquire` fence, and loads the version again. The fence pairs with
//!   L1: a reader that has seen any word of a later writer also sees that writer's locked version.
//!   If both versions are equal and unlocked, everything that was read was the leaf's content at
//!   one instant: that of R1.
//! * **R3** What is read before this validation may be torn. So no offset may lead outside the
//!   leaf: those of a B+-tree are checked ([`words::Torn`]), those of a bucket are taken modulo its
//!   size (`hash::bucket`). A pointer is only followed after a validation.
//!
//! # Reclamation
//!
//! Leaves, inner nodes and outside objects are freed through the epoch: a thread that holds a
//! `Guard` may keep reading what it has found under it. A leaf, node or object is retired exactly
//! once, by the thread that has unlinked it under the lock that covers it. The thread retires it
//! after it has released the lock, because retiring may free garbage of other threads, which may
//! take long and call arbitrary destructors.
//!
//! The range of a leaf never changes. To change it, the leaf is marked obsolete, under its lock,
//! before its successors can be reached. So a leaf that isn't obsolete covers the range that the
//! path to it says, however old the nodes on the path are.

pub(crate) mod version;
#[allow(unsafe_code)]
pub(crate) mod words;
