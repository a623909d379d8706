//! Tables made, closed, asked about.

use crate::arrays::{read, with_buffers, Part};
use crate::failure::{guarded, guarded_in, Failure};
use crate::handles::{self, world, Handle};
use jni::objects::{JByteArray, JClass};
use jni::sys::{jboolean, jint, jlong};
use jni::EnvUnowned;
use larder::{Bounds, Evict, Limits};

/// Makes a table, an ordered_set. A time or a limit below 0 is none.
#[no_mangle]
extern "system" fn Java_larder_Native_open<'l>(
    env: EnvUnowned<'l>,
    _class: JClass<'l>,
    name: JByteArray<'l>,
    ttl: jlong,
    idle: jlong,
    max_size: jlong,
    max_memory: jlong,
    evict: jint,
    bounded: jboolean,
    compressed: jboolean,
) -> jlong {
    guarded_in(env, 0, |env| {
        let length = i32::try_from(name.len(env)?).unwrap_or(i32::MAX);
        let name = with_buffers(|buffers| {
            let bytes = read(env, &name, Part { at: 0, length }, &mut buffers.key)?;
            let text = std::str::from_utf8(bytes).map(str::to_owned);
            text.map_err(|_| Failure::Argument("the name is no text".into()))
        })?;
        let mut builder = world().table(&name).ordered_set();
        if compressed {
            builder = builder.compressed();
        }
        let (max_size, max_memory) = (usize::try_from(max_size), usize::try_from(max_memory));
        let has_limits = max_size.is_ok() || max_memory.is_ok();
        if bounded {
            builder = builder.bounds(Bounds {
                ttl: u64::try_from(ttl).ok(),
                idle: u64::try_from(idle).ok(),
                limits: has_limits.then_some(Limits {
                    max_size: max_size.ok(),
                    max_memory: max_memory.ok(),
                    evict: evict_of(evict)?,
                }),
            });
        }
        handles::open(Handle::of_table(builder.create()?))
    })
}

fn evict_of(evict: jint) -> Result<Evict, Failure> {
    match evict {
        0 => Ok(Evict::None),
        1 => Ok(Evict::Lru),
        2 => Ok(Evict::TinyLfu),
        _ => Err(Failure::Argument(format!("there is no eviction {evict}"))),
    }
}

#[no_mangle]
extern "system" fn Java_larder_Native_close<'l>(
    env: EnvUnowned<'l>,
    _class: JClass<'l>,
    id: jlong,
) -> jboolean {
    guarded(env, false, || Ok(handles::close(id)))
}

#[no_mangle]
extern "system" fn Java_larder_Native_snapshot<'l>(
    env: EnvUnowned<'l>,
    _class: JClass<'l>,
    id: jlong,
) -> jlong {
    guarded(env, 0, || {
        let snapshot = handles::with(id, |handle| Ok(handle.table.snapshot()?))?;
        handles::open(Handle::of_snapshot(snapshot))
    })
}

/// How many tables and snapshots are open in the process.
#[no_mangle]
extern "system" fn Java_larder_Native_handles<'l>(
    env: EnvUnowned<'l>,
    _class: JClass<'l>,
) -> jlong {
    guarded(env, 0, || Ok(handles::count() as jlong))
}

#[no_mangle]
extern "system" fn Java_larder_Native_size<'l>(
    env: EnvUnowned<'l>,
    _class: JClass<'l>,
    id: jlong,
) -> jlong {
    guarded(env, 0, || {
        handles::with(id, |handle| Ok(handle.table.len() as jlong))
    })
}

#[no_mangle]
extern "system" fn Java_larder_Native_memory<'l>(
    env: EnvUnowned<'l>,
    _class: JClass<'l>,
    id: jlong,
) -> jlong {
    guarded(env, 0, || {
        handles::with(id, |handle| Ok(handle.table.memory() as jlong))
    })
}

#[no_mangle]
extern "system" fn Java_larder_Native_clear<'l>(
    env: EnvUnowned<'l>,
    _class: JClass<'l>,
    id: jlong,
) -> jlong {
    guarded(env, 0, || {
        handles::with(id, |handle| Ok(handle.table.clear()? as jlong))
    })
}
