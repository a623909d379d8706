//! Keys and values in Java's arrays and direct buffers. Neither side allocates memory: bytes are
//! copied to and from the thread's buffers.

use crate::arrays::{with_buffers, Bytes, Part};
use crate::failure::{guarded_in, Failure};
use crate::handles::with;
use crate::item::Item;
use jni::objects::{JByteArray, JByteBuffer};
use jni::sys::{jboolean, jint, jlong};
use jni::Env;

/// The result if there is no row.
const NONE: jint = -1;

/// A key as Java passes it: a part of an array or of a buffer; if that is null, a long.
struct Key<B> {
    long: jlong,
    bytes: B,
    part: Part,
}

impl<B: Bytes> Key<B> {
    /// Reads the key. If it is bytes, they are copied to `out`.
    fn read<'o>(&self, env: &Env<'_>, out: &'o mut Vec<u8>) -> Result<Item<'o>, Failure> {
        if self.bytes.is_nothing() {
            return Ok(Item::Int(self.long));
        }
        Ok(Item::Bytes(self.bytes.read(env, self.part, out)?))
    }
}

/// Copies the value under a key to `into`, from `into_at` on, and returns its length, or `NONE`. If
/// there isn't enough room, nothing is copied.
fn get<B: Bytes>(
    env: &Env<'_>,
    id: jlong,
    key: Key<B>,
    into: B,
    into_at: jint,
    room: jint,
) -> Result<jint, Failure> {
    with_buffers(|buffers| {
        let key = key.read(env, &mut buffers.key)?;
        // First copy the value from the table, and then to Java. So a wait for the JVM, which may
        // be collecting garbage, never keeps a table from being closed.
        let found = copy(id, key, &mut buffers.value)?;
        // `NONE` is below 0, so nothing is written for a missing row.
        if (0..=room).contains(&found) {
            into.write(env, into_at, &buffers.value)?;
        }
        Ok(found)
    })
}

/// Copies the value under a key to `out`, and returns its length, or `NONE`.
fn copy(id: jlong, key: Item<'_>, out: &mut Vec<u8>) -> Result<jint, Failure> {
    out.clear();
    let length = with(id, |handle| {
        handle.get(key, |value| match value {
            Item::Bytes(bytes) => {
                out.extend_from_slice(bytes);
                Ok(bytes.len())
            }
            Item::Int(_) => Err(Failure::Stored("the value is a long, and no bytes".into())),
        })
    })?;
    // No binary that came from Java is longer.
    Ok(length.map_or(NONE, |length| jint::try_from(length).unwrap_or(jint::MAX)))
}

/// Stores a part of `value` under a key.
fn put<B: Bytes>(
    env: &Env<'_>,
    id: jlong,
    key: Key<B>,
    value: B,
    part: Part,
) -> Result<(), Failure> {
    with_buffers(|buffers| {
        let key = key.read(env, &mut buffers.key)?;
        // Both are copied before the table is used, for the same reason as in `get`.
        let value = Item::Bytes(value.read(env, part, &mut buffers.value)?);
        with(id, |handle| handle.put(key, value))
    })
}

fn part(at: jint, length: jint) -> Part {
    Part { at, length }
}

natives! { guarded_in:
    Java_larder_Native_getBytes(
        id: jlong, long: jlong, bytes: JByteArray<'_>, at: jint, length: jint,
        into: JByteArray<'_>, into_at: jint, room: jint,
    ) -> jint, NONE, |env| {
        let key = Key { long, bytes, part: part(at, length) };
        get(env, id, key, into, into_at, room)
    };

    Java_larder_Native_getDirect(
        id: jlong, long: jlong, bytes: JByteBuffer<'_>, at: jint, length: jint,
        into: JByteBuffer<'_>, into_at: jint, room: jint,
    ) -> jint, NONE, |env| {
        let key = Key { long, bytes, part: part(at, length) };
        get(env, id, key, into, into_at, room)
    };

    Java_larder_Native_putBytes(
        id: jlong, long: jlong, bytes: JByteArray<'_>, at: jint, length: jint,
        value: JByteArray<'_>, value_at: jint, value_length: jint,
    ), (), |env| {
        let key = Key { long, bytes, part: part(at, length) };
        put(env, id, key, value, part(value_at, value_length))
    };

    Java_larder_Native_putDirect(
        id: jlong, long: jlong, bytes: JByteBuffer<'_>, at: jint, length: jint,
        value: JByteBuffer<'_>, value_at: jint, value_length: jint,
    ), (), |env| {
        let key = Key { long, bytes, part: part(at, length) };
        put(env, id, key, value, part(value_at, value_length))
    };

    /// Whether there was such a row.
    Java_larder_Native_deleteBytes(
        id: jlong, long: jlong, bytes: JByteArray<'_>, at: jint, length: jint,
    ) -> jboolean, false, |env| with_buffers(|buffers| {
        let key = Key { long, bytes, part: part(at, length) };
        let key = key.read(env, &mut buffers.key)?;
        Ok(with(id, |handle| handle.remove(key, |_| Ok(())))?.is_some())
    });
}
