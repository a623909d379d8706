//! Keys and values of any kind: each method takes a request in an array, of which `length` bytes
//! count, and those that give rows write them to the array that Java offers, or to a new one.

use crate::arrays::{answer, with_buffers, Bytes, Part};
use crate::failure::{guarded_in, Failure};
use crate::handles::{with, Handle};
use crate::item::Item;
use crate::scan::{bound, row_of, Bounds};
use crate::wire::{Reply, Request};
use jni::objects::{JByteArray, JClass};
use jni::sys::{jboolean, jint, jlong};
use jni::{Env, EnvUnowned};
use larder::{Direction, TimeLeft};

/// A page of this many bytes gets no further row, so that it fits in an array and in Java's heap if
/// one row does.
const PAGE_BYTES: usize = 256 << 10;

/// Reads the request and uses the table.
pub(super) fn ask<R>(
    env: &mut Env<'_>,
    id: jlong,
    request: JByteArray<'_>,
    length: jint,
    f: impl FnOnce(&Handle, &mut Request<'_>) -> Result<R, Failure>,
) -> Result<R, Failure> {
    with_buffers(|buffers| {
        let part = Part { at: 0, length };
        let bytes = request.read(env, part, &mut buffers.value)?;
        with(id, |handle| f(handle, &mut Request::new(bytes)))
    })
}

/// As `ask`, for what has a reply: gives the one that `f` writes, unless it says that there is
/// none.
fn reply<'l>(
    env: EnvUnowned<'l>,
    id: jlong,
    request: JByteArray<'l>,
    length: jint,
    offered: JByteArray<'l>,
    f: impl FnOnce(&Handle, &mut Request<'_>, &mut Reply) -> Result<bool, Failure>,
) -> JByteArray<'l> {
    guarded_in(env, JByteArray::null(), |env| {
        with_buffers(|buffers| {
            let part = Part { at: 0, length };
            let bytes = request.read(env, part, &mut buffers.value)?;
            let reply = &mut buffers.reply;
            reply.clear();
            // The use of the table ends before an array is made: Java may collect garbage for it.
            match with(id, |handle| f(handle, &mut Request::new(bytes), reply))? {
                true => answer(env, offered, reply),
                false => Ok(JByteArray::null()),
            }
        })
    })
}

/// Methods that take a request and have a reply, unless they say that they haven't.
macro_rules! reply {
    ($($(#[$doc:meta])* $name:ident: $f:expr;)*) => {$(
        $(#[$doc])*
        #[no_mangle]
        extern "system" fn $name<'l>(
            env: EnvUnowned<'l>,
            _class: JClass<'l>,
            id: jlong,
            request: JByteArray<'l>,
            length: jint,
            offered: JByteArray<'l>,
        ) -> JByteArray<'l> {
            reply(env, id, request, length, offered, $f)
        }
    )*};
}

/// Methods that give the value that was or is under a key.
macro_rules! give_a_value {
    ($($name:ident: |$handle:ident, $request:ident, $visit:ident| $did:expr;)*) => {
        reply! {$(
            $name: |$handle, $request, reply| {
                let $visit = |value: Item<'_>| {
                    reply.item(value);
                    Ok(())
                };
                Ok($did?.is_some())
            };
        )*}
    };
}

give_a_value! {
    Java_larder_Native_get: |handle, request, visit| handle.get(request.item()?, visit);
    Java_larder_Native_exchange: |handle, request, visit|
        handle.exchange(request.item()?, request.item()?, visit);
    Java_larder_Native_putNew: |handle, request, visit|
        handle.put_new(request.item()?, request.item()?, visit);
    Java_larder_Native_remove: |handle, request, visit| handle.remove(request.item()?, visit);
}

/// Methods that take a request and give a number or whether.
macro_rules! give_a_number {
    ($(
        $(#[$doc:meta])*
        $name:ident -> $type:ty, $failed:expr, |$handle:ident, $request:ident| $did:expr;
    )*) => {
        natives! { guarded_in: $(
            $(#[$doc])*
            $name(id: jlong, request: JByteArray<'_>, length: jint) -> $type, $failed,
                |env| ask(env, id, request, length, |$handle, $request| $did);
        )*}
    };
}

give_a_number! {
    Java_larder_Native_has -> jboolean, false, |handle, request| handle.contains(request.item()?);
    Java_larder_Native_put -> jboolean, false, |handle, request| {
        handle.put(request.item()?, request.item()?)?;
        Ok(true)
    };
    /// The key, what is expected, what takes its place; either may be nothing.
    Java_larder_Native_swap -> jboolean, false, |handle, request|
        handle.compare_and_set(request.item()?, request.optional_item()?, request.optional_item()?);
    /// The key, an increment, and whether the sum is an int; the sum.
    Java_larder_Native_add -> jlong, 0, |handle, request|
        handle.add(request.item()?, request.long()?, request.byte()? != 0);
    /// The number of rows, and the rows.
    Java_larder_Native_putAll -> jboolean, false, |handle, request| {
        let count = request.int()?;
        handle.put_all((0..count).map(|_| Ok((request.item()?, request.item()?))))?;
        Ok(true)
    };
    /// Milliseconds, below 0 for ever; a row.
    Java_larder_Native_putFor -> jboolean, false, |handle, request| {
        let ttl = u64::try_from(request.long()?).ok();
        handle.put_for(request.item()?, request.item()?, ttl)?;
        Ok(true)
    };
    /// Milliseconds, below 0 for ever; a key. Whether it is there.
    Java_larder_Native_expire -> jboolean, false, |handle, request| {
        let ttl = u64::try_from(request.long()?).ok();
        handle.expire(request.item()?, ttl)
    };
    /// Milliseconds, -1 for ever, -2 for no row.
    Java_larder_Native_timeLeft -> jlong, 0, |handle, request|
        Ok(match handle.time_left(request.item()?)? {
            TimeLeft::Ms(ms) => jlong::try_from(ms).unwrap_or(jlong::MAX),
            TimeLeft::Unlimited => -1,
            TimeLeft::Absent => -2,
        });
    Java_larder_Native_count -> jlong, 0, |handle, request| {
        let bounds = bounds_of(request)?;
        Ok(handle.count(bounds)? as jlong)
    };
    /// From 1; 0 for none.
    Java_larder_Native_rank -> jlong, 0, |handle, request|
        Ok(handle.rank(request.item()?)?.unwrap_or(0) as jlong);
    /// A match specification.
    Java_larder_Native_selectCount -> jlong, 0, |handle, request| {
        Ok(handle.table.select_count(spec_of(request)?)? as jlong)
    };
    Java_larder_Native_selectDelete -> jlong, 0, |handle, request| {
        Ok(handle.table.select_delete(spec_of(request)?)? as jlong)
    };
}

/// Two bounds: for each whether it is part of the range, and the key.
fn bounds_of(request: &mut Request<'_>) -> Result<Bounds, Failure> {
    let mut next = || {
        let is_included = request.byte()? != 0;
        Ok::<_, Failure>(bound(request.optional_item()?, is_included))
    };
    Ok((next()?, next()?))
}

fn spec_of<'r>(request: &mut Request<'r>) -> Result<&'r str, Failure> {
    text_of(request.item()?, "the match specification")
}

/// The text that an item is.
///
/// # Errors
/// `Argument` if it is none; it says that `what` is none.
pub(super) fn text_of<'r>(item: Item<'r>, what: &str) -> Result<&'r str, Failure> {
    let text = match item {
        Item::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
        Item::Int(_) => None,
    };
    text.ok_or_else(|| Failure::Argument(format!("{what} is no text")))
}

reply! {
    /// A direction (0: ascending), the most rows, two bounds. The reply: how many rows, the highest
    /// bit set if these are all, and the rows. They are fewer than the most if they are long.
    Java_larder_Native_page: |handle, request, reply| {
        let direction = match request.byte()? {
            0 => Direction::Forward,
            _ => Direction::Backward,
        };
        let most = request.int()? as usize;
        let bounds = bounds_of(request)?;
        // The number of rows is known only after they are written. A zero keeps its place.
        reply.int(0);
        let (mut count, mut is_full) = (0, false);
        let is_all = handle.page(bounds, direction, most, |key, value| {
            // Rows after a full page are read by the next one, which begins at the last key.
            is_full = is_full || reply.bytes().len() >= PAGE_BYTES;
            if !is_full {
                count += 1;
                reply.item(key);
                reply.item(value);
            }
        })?;
        reply.set_first_int(count | u32::from(is_all && !is_full) << 31);
        Ok(true)
    };

    /// A number from 1 or from -1 on. The reply: the row.
    Java_larder_Native_nth: |handle, request, reply| {
        handle.nth(request.long()?, |key, value| {
            reply.item(key);
            reply.item(value);
        })
    };

    /// A match specification that gives rows. The reply: how many, and the rows.
    Java_larder_Native_select: |handle, request, reply| {
        let rows = handle.table.select(spec_of(request)?)?;
        reply.int(u32::try_from(rows.len()).unwrap_or(u32::MAX));
        for row in &rows {
            let (key, value) = row_of(row.as_ref())?;
            reply.item(key);
            reply.item(value);
        }
        Ok(true)
    };
}
