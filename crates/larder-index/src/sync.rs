//! Where the structures take their atomics from: one place, so that a model checker can put its own in.

pub(crate) use std::sync::atomic;
