//! Subscriptions.

use super::rows::{ask, text_of};
use crate::arrays::{hand_over, Bytes};
use crate::failure::{guarded, guarded_in};
use crate::feed;
use jni::objects::{JByteArray, JLongArray};
use jni::sys::{jint, jlong};

natives! { guarded_in:
    /// The request: the token of the feed, the number of events by which it may fall behind, a
    /// filter or nothing, and whether a snapshot is requested. `numbers` gets the numbers of the
    /// feed and of the snapshot, which is 0 without one.
    Java_larder_Native_subscribe(
        id: jlong, request: JByteArray<'_>, length: jint, numbers: JLongArray<'_>,
    ), (), |env| {
        let (feed, snapshot) = ask(env, id, request, length, |handle, request| {
            let (token, limit) = (request.long()?, request.int()? as usize);
            let filter = request.optional_item()?;
            let filter = filter.map(|item| text_of(item, "the filter")).transpose()?;
            let with_snapshot = request.byte()? != 0;
            handle.follow(token, limit, filter, with_snapshot)
        })?;
        hand_over(env, &numbers, &[feed, snapshot.unwrap_or(0)])
    };

    /// Copies how many changes there are, the state of the feed, and the changes to `into`. Returns
    /// their length. If there is less room, nothing is copied, and the next call offers them again.
    Java_larder_Native_changes(id: jlong, into: JByteArray<'_>, longest: jint) -> jint, 0, |env| {
        let room = into.len(env)?;
        let longest = usize::try_from(longest).unwrap_or(0);
        let length = feed::next(id, longest, |changes| {
            let fits = changes.len() <= room;
            if fits {
                into.write(env, 0, changes)?;
            }
            Ok(fits)
        })?;
        Ok(jint::try_from(length).unwrap_or(jint::MAX))
    };
}

natives! { guarded:
    /// Waits until a feed that had no changes may have some. Returns its token.
    Java_larder_Native_nextSignal() -> jlong, 0, || Ok(feed::next_signal());
}
