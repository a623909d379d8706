//! Keys and values that are longs: nothing of Java's is touched.

use crate::failure::{guarded, Failure};
use crate::handles::{with, Handle};
use crate::item::{long_of, Item};
use jni::sys::{jboolean, jlong};

/// The long that `f` finds, or `absent`.
#[inline]
fn found(
    id: jlong,
    absent: jlong,
    f: impl FnOnce(&Handle) -> Result<Option<jlong>, Failure>,
) -> Result<jlong, Failure> {
    Ok(with(id, f)?.unwrap_or(absent))
}

natives! { guarded:
    Java_larder_Native_getLong(id: jlong, key: jlong, absent: jlong) -> jlong, absent,
        || found(id, absent, |handle| handle.get(Item::Int(key), long_of));

    Java_larder_Native_hasLong(id: jlong, key: jlong) -> jboolean, false,
        || with(id, |handle| handle.contains(Item::Int(key)));

    Java_larder_Native_setLong(id: jlong, key: jlong, value: jlong), (),
        || with(id, |handle| handle.put(Item::Int(key), Item::Int(value)));

    /// The long that was there.
    Java_larder_Native_putLong(id: jlong, key: jlong, value: jlong, absent: jlong) -> jlong, absent,
        || found(id, absent, |handle| {
            handle.exchange(Item::Int(key), Item::Int(value), long_of)
        });

    /// The long that is there already.
    Java_larder_Native_putNewLong(
        id: jlong, key: jlong, value: jlong, absent: jlong,
    ) -> jlong, absent,
        || found(id, absent, |handle| {
            handle.put_new(Item::Int(key), Item::Int(value), long_of)
        });

    /// The sum.
    Java_larder_Native_addLong(id: jlong, key: jlong, increment: jlong) -> jlong, 0,
        || with(id, |handle| handle.add(Item::Int(key), increment, false));

    /// The long that was there.
    Java_larder_Native_removeLong(id: jlong, key: jlong, absent: jlong) -> jlong, absent,
        || found(id, absent, |handle| handle.remove(Item::Int(key), long_of));

    Java_larder_Native_swapLong(
        id: jlong, key: jlong, expected: jlong, value: jlong,
    ) -> jboolean, false,
        || with(id, |handle| {
            let (expected, value) = (Item::Int(expected), Item::Int(value));
            handle.compare_and_set(Item::Int(key), Some(expected), Some(value))
        });
}
