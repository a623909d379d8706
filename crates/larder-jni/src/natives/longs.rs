//! Keys and values that are longs: nothing of Java's is touched.

use crate::failure::guarded;
use crate::handles::with;
use crate::item::{long_of, Item};
use jni::objects::JClass;
use jni::sys::{jboolean, jlong};
use jni::EnvUnowned;

#[no_mangle]
extern "system" fn Java_larder_Native_getLong<'l>(
    env: EnvUnowned<'l>,
    _class: JClass<'l>,
    id: jlong,
    key: jlong,
    absent: jlong,
) -> jlong {
    guarded(env, absent, || {
        let value = with(id, |handle| handle.get(Item::Int(key), long_of))?;
        Ok(value.unwrap_or(absent))
    })
}

#[no_mangle]
extern "system" fn Java_larder_Native_hasLong<'l>(
    env: EnvUnowned<'l>,
    _class: JClass<'l>,
    id: jlong,
    key: jlong,
) -> jboolean {
    guarded(env, false, || {
        with(id, |handle| handle.contains(Item::Int(key)))
    })
}

#[no_mangle]
extern "system" fn Java_larder_Native_setLong<'l>(
    env: EnvUnowned<'l>,
    _class: JClass<'l>,
    id: jlong,
    key: jlong,
    value: jlong,
) {
    guarded(env, (), || {
        with(id, |handle| handle.put(Item::Int(key), Item::Int(value)))
    });
}

#[no_mangle]
extern "system" fn Java_larder_Native_putLong<'l>(
    env: EnvUnowned<'l>,
    _class: JClass<'l>,
    id: jlong,
    key: jlong,
    value: jlong,
    absent: jlong,
) -> jlong {
    guarded(env, absent, || {
        let (key, value) = (Item::Int(key), Item::Int(value));
        let old = with(id, |handle| handle.exchange(key, value, long_of))?;
        Ok(old.unwrap_or(absent))
    })
}

#[no_mangle]
extern "system" fn Java_larder_Native_putNewLong<'l>(
    env: EnvUnowned<'l>,
    _class: JClass<'l>,
    id: jlong,
    key: jlong,
    value: jlong,
    absent: jlong,
) -> jlong {
    guarded(env, absent, || {
        let (key, value) = (Item::Int(key), Item::Int(value));
        let there = with(id, |handle| handle.put_new(key, value, long_of))?;
        Ok(there.unwrap_or(absent))
    })
}

#[no_mangle]
extern "system" fn Java_larder_Native_addLong<'l>(
    env: EnvUnowned<'l>,
    _class: JClass<'l>,
    id: jlong,
    key: jlong,
    increment: jlong,
) -> jlong {
    guarded(env, 0, || {
        with(id, |handle| handle.add(Item::Int(key), increment))
    })
}

#[no_mangle]
extern "system" fn Java_larder_Native_removeLong<'l>(
    env: EnvUnowned<'l>,
    _class: JClass<'l>,
    id: jlong,
    key: jlong,
    absent: jlong,
) -> jlong {
    guarded(env, absent, || {
        let old = with(id, |handle| handle.remove(Item::Int(key), long_of))?;
        Ok(old.unwrap_or(absent))
    })
}

#[no_mangle]
extern "system" fn Java_larder_Native_swapLong<'l>(
    env: EnvUnowned<'l>,
    _class: JClass<'l>,
    id: jlong,
    key: jlong,
    expected: jlong,
    value: jlong,
) -> jboolean {
    guarded(env, false, || {
        let (expected, value) = (Item::Int(expected), Item::Int(value));
        with(id, |handle| {
            handle.compare_and_set(Item::Int(key), Some(expected), Some(value))
        })
    })
}
