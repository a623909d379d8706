//! Transactions, and lists of conditional operations.

use crate::arrays::{hand_over, with_buffers, Bytes, Part};
use crate::failure::guarded_in;
use crate::transaction::{begin, commit, commit_operations};
use crate::wire::Request;
use jni::objects::{JByteArray, JLongArray};
use jni::sys::{jboolean, jint, jlong};

natives! { guarded_in:
    /// Begins a transaction on the tables of these numbers. Writes the numbers of their views to
    /// `numbers`, then that of the transaction.
    Java_larder_Native_begin(tables: JLongArray<'_>, numbers: JLongArray<'_>), (), |env| {
        let mut ids = vec![0; tables.len(env)?];
        tables.get_region(env, 0, &mut ids)?;
        // Take the memory for the numbers now. Java made its array before the call, for the same
        // reason: nothing may fail between an open number and its owner.
        let mut opened = Vec::with_capacity(ids.len() + 1);
        let transaction = begin(&ids, |view| opened.push(view))?;
        opened.push(transaction);
        hand_over(env, &numbers, &opened)
    };

    /// Commits the transaction of a number. Returns whether it took effect. If it didn't, it has
    /// begun again, and the numbers of its new views are written to `views`.
    Java_larder_Native_commit(id: jlong, views: JLongArray<'_>) -> jboolean, false, |env| {
        let mut opened = Vec::new();
        let took_effect = commit(id, |view| opened.push(view))?;
        hand_over(env, &views, &opened)?;
        Ok(took_effect)
    };

    /// Carries out a list of conditional operations. Returns 0 if it took effect, else the position
    /// of the first operation whose condition didn't hold, counted from 1.
    Java_larder_Native_commitOperations(request: JByteArray<'_>, length: jint) -> jlong, 0,
        |env| with_buffers(|buffers| {
            let part = Part { at: 0, length };
            let bytes = request.read(env, part, &mut buffers.value)?;
            let refused = commit_operations(&mut Request::new(bytes))?;
            Ok(refused.unwrap_or(0) as jlong)
        });
}
