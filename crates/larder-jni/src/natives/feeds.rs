//! Subscriptions.

use super::rows::{converse, text_of};
use crate::failure::guarded;
use crate::feed;
use crate::handles::with;
use jni::objects::{JByteArray, JClass};
use jni::sys::{jint, jlong};
use jni::EnvUnowned;

/// The token of the feed, how many events it may fall behind, a filter or nothing, and whether a
/// snapshot is wished. The reply: the number of the feed, and that of the snapshot or 0.
#[no_mangle]
extern "system" fn Java_larder_Native_subscribe<'l>(
    env: EnvUnowned<'l>,
    _class: JClass<'l>,
    id: jlong,
    request: JByteArray<'l>,
    length: jint,
    offered: JByteArray<'l>,
) -> JByteArray<'l> {
    converse(env, (request, length), offered, |request, reply| {
        let (token, limit) = (request.long()?, request.int()? as usize);
        let filter = request.maybe()?;
        let filter = filter.map(|item| text_of(item, "the filter")).transpose()?;
        let with_snapshot = request.byte()? != 0;
        let (feed, snapshot) = with(id, |handle| {
            handle.follow((token, limit), filter, with_snapshot)
        })?;
        reply.long(feed);
        reply.long(snapshot.unwrap_or(0));
        Ok(true)
    })
}

/// The number of a feed. The reply: how many changes, the state of the feed, and the changes.
#[no_mangle]
extern "system" fn Java_larder_Native_changes<'l>(
    env: EnvUnowned<'l>,
    _class: JClass<'l>,
    request: JByteArray<'l>,
    length: jint,
    offered: JByteArray<'l>,
) -> JByteArray<'l> {
    converse(env, (request, length), offered, |request, reply| {
        feed::next(request.long()?, reply)?;
        Ok(true)
    })
}

natives! { guarded:
    /// Waits until a feed that had nothing may have something; its token.
    Java_larder_Native_rung() -> jlong, 0, || Ok(feed::rung());
}
