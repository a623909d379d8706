//! Transactions, and lists of conditional operations.

use super::rows::converse;
use crate::arrays::{with_buffers, Bytes, Part};
use crate::failure::guarded_in;
use crate::transaction::{begin, commit, commit_operations};
use crate::wire::Request;
use jni::objects::{JByteArray, JClass};
use jni::sys::{jint, jlong};
use jni::EnvUnowned;

/// How many tables, and their numbers. The reply: the numbers of the views, and of the transaction.
#[no_mangle]
extern "system" fn Java_larder_Native_begin<'l>(
    env: EnvUnowned<'l>,
    _class: JClass<'l>,
    request: JByteArray<'l>,
    length: jint,
    offered: JByteArray<'l>,
) -> JByteArray<'l> {
    converse(env, (request, length), offered, |request, reply| {
        let tables = (0..request.int()?).map(|_| request.long());
        let tables = tables.collect::<Result<Vec<_>, _>>()?;
        let transaction = begin(&tables, |view| reply.long(view))?;
        reply.long(transaction);
        Ok(true)
    })
}

/// The number of a transaction. No reply if it took effect; else the numbers of its new views.
#[no_mangle]
extern "system" fn Java_larder_Native_commit<'l>(
    env: EnvUnowned<'l>,
    _class: JClass<'l>,
    request: JByteArray<'l>,
    length: jint,
    offered: JByteArray<'l>,
) -> JByteArray<'l> {
    converse(env, (request, length), offered, |request, reply| {
        let took_effect = commit(request.long()?, |view| reply.long(view))?;
        Ok(!took_effect)
    })
}

natives! { guarded_in:
    /// A list of operations. 0 if it took effect; else the number of the first that didn't hold.
    Java_larder_Native_commitOperations(request: JByteArray<'_>, length: jint) -> jlong, 0,
        |env| with_buffers(|buffers| {
            let part = Part { at: 0, length };
            let bytes = request.read(env, part, &mut buffers.value)?;
            let refused = commit_operations(&mut Request::new(bytes))?;
            Ok(refused.unwrap_or(0) as jlong)
        });
}
