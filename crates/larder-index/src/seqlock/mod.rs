//! Memory that many threads read while one writes it: the protocol, and words and versions that
//! follow it.
//!
//! # The protocol
//!
//! A leaf's content is a run of atomic words, so an optimistic read races with nothing in the sense
//! of the language. The leaf's *version* (bit 0 locked, bit 1 obsolete, a count above) says whether
//! what was read was true:
//!
//! 1. A writer takes the lock (compare-exchange, `Acquire`), then a `Release` fence (L1), writes
//!    words `Relaxed`, and unlocks with a new count (`Release`, L2).
//! 2. A reader loads the version (`Acquire`, R1: pairs with L2, so it sees all that the count
//!    stands for), reads words `Relaxed`, then an `Acquire` fence (R2: pairs with L1: a reader that
//!    saw any word of a later writer sees its locked version, too), then loads the version again.
//!    Equal and unlocked: all that was read was true at one instant.
//! 3. What was read before the check may be torn. So every offset is checked against the leaf's
//!    size ([`words::Torn`]), and a pointer is followed only after a check.
//!
//! # Life and death
//!
//! Leaves, inner nodes and outside objects are freed through the epoch: a thread that holds a
//! `Guard` may go on reading what it found under it. A thing is retired exactly once, by the thread
//! that unlinked it while it held the lock that covers it, and after it let go of that: to retire
//! may free what others retired before, and nobody knows what that takes. A leaf's range of
//! positions never changes: a leaf whose range would change is marked obsolete, under its lock,
//! before its replacements can be reached. So a leaf that isn't obsolete covers what the path to it
//! said, however old the nodes on the path are.

pub(crate) mod version;
#[allow(unsafe_code)]
pub(crate) mod words;
