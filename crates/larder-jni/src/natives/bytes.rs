//! Keys or values in Java's arrays and direct buffers. Neither side allocates: bytes are copied to
//! the thread's buffers and from them.

use crate::arrays::{read, read_direct, with_buffers, write, write_direct, Part};
use crate::failure::{guarded_in, Failure};
use crate::handles::with;
use crate::item::Item;
use jni::objects::{JByteArray, JByteBuffer, JClass};
use jni::sys::{jboolean, jint, jlong};
use jni::{Env, EnvUnowned};

/// The answer for no row.
const NONE: jint = -1;

/// A key: what is in a part of an array, or a long where there is none.
fn key_of<'o>(
    env: &Env<'_>,
    long: jlong,
    array: &JByteArray<'_>,
    part: Part,
    out: &'o mut Vec<u8>,
) -> Result<Item<'o>, Failure> {
    if array.is_null() {
        return Ok(Item::Int(long));
    }
    Ok(Item::Bytes(read(env, array, part, out)?))
}

/// As `key_of`, of a direct buffer.
fn direct_key_of<'o>(
    env: &Env<'_>,
    long: jlong,
    buffer: &JByteBuffer<'_>,
    part: Part,
    out: &'o mut Vec<u8>,
) -> Result<Item<'o>, Failure> {
    if buffer.is_null() {
        return Ok(Item::Int(long));
    }
    Ok(Item::Bytes(read_direct(env, buffer, part, out)?))
}

/// Copies the value under a key to `out`: its length, or `NONE`.
fn get(id: jlong, key: Item<'_>, out: &mut Vec<u8>) -> Result<jint, Failure> {
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

/// Copies the value under a key to an array. Its length; where there is less room, nothing is
/// copied.
#[no_mangle]
extern "system" fn Java_larder_Native_getBytes<'l>(
    env: EnvUnowned<'l>,
    _class: JClass<'l>,
    id: jlong,
    long: jlong,
    key: JByteArray<'l>,
    at: jint,
    length: jint,
    into: JByteArray<'l>,
    into_at: jint,
    room: jint,
) -> jint {
    guarded_in(env, NONE, |env| {
        with_buffers(|buffers| {
            let key = key_of(env, long, &key, Part { at, length }, &mut buffers.key)?;
            let found = get(id, key, &mut buffers.value)?;
            if (0..=room).contains(&found) {
                write(env, &into, into_at, &buffers.value)?;
            }
            Ok(found)
        })
    })
}

#[no_mangle]
extern "system" fn Java_larder_Native_putBytes<'l>(
    env: EnvUnowned<'l>,
    _class: JClass<'l>,
    id: jlong,
    long: jlong,
    key: JByteArray<'l>,
    at: jint,
    length: jint,
    value: JByteArray<'l>,
    value_at: jint,
    value_length: jint,
) {
    guarded_in(env, (), |env| {
        with_buffers(|buffers| {
            let key = key_of(env, long, &key, Part { at, length }, &mut buffers.key)?;
            let part = Part {
                at: value_at,
                length: value_length,
            };
            let value = Item::Bytes(read(env, &value, part, &mut buffers.value)?);
            with(id, |handle| handle.put(key, value))
        })
    });
}

#[no_mangle]
extern "system" fn Java_larder_Native_deleteBytes<'l>(
    env: EnvUnowned<'l>,
    _class: JClass<'l>,
    id: jlong,
    long: jlong,
    key: JByteArray<'l>,
    at: jint,
    length: jint,
) -> jboolean {
    guarded_in(env, false, |env| {
        with_buffers(|buffers| {
            let key = key_of(env, long, &key, Part { at, length }, &mut buffers.key)?;
            Ok(with(id, |handle| handle.remove(key, |_| Ok(())))?.is_some())
        })
    })
}

#[no_mangle]
extern "system" fn Java_larder_Native_getDirect<'l>(
    env: EnvUnowned<'l>,
    _class: JClass<'l>,
    id: jlong,
    long: jlong,
    key: JByteBuffer<'l>,
    at: jint,
    length: jint,
    into: JByteBuffer<'l>,
    into_at: jint,
    room: jint,
) -> jint {
    guarded_in(env, NONE, |env| {
        with_buffers(|buffers| {
            let key = direct_key_of(env, long, &key, Part { at, length }, &mut buffers.key)?;
            let found = get(id, key, &mut buffers.value)?;
            if (0..=room).contains(&found) {
                write_direct(env, &into, into_at, &buffers.value)?;
            }
            Ok(found)
        })
    })
}

#[no_mangle]
extern "system" fn Java_larder_Native_putDirect<'l>(
    env: EnvUnowned<'l>,
    _class: JClass<'l>,
    id: jlong,
    long: jlong,
    key: JByteBuffer<'l>,
    at: jint,
    length: jint,
    value: JByteBuffer<'l>,
    value_at: jint,
    value_length: jint,
) {
    guarded_in(env, (), |env| {
        with_buffers(|buffers| {
            let key = direct_key_of(env, long, &key, Part { at, length }, &mut buffers.key)?;
            let part = Part {
                at: value_at,
                length: value_length,
            };
            let value = Item::Bytes(read_direct(env, &value, part, &mut buffers.value)?);
            with(id, |handle| handle.put(key, value))
        })
    });
}
