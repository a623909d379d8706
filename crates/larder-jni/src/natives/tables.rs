//! Tables made, closed, asked about.

use crate::arrays::{with_buffers, Bytes, Part};
use crate::exceptions;
use crate::failure::{guarded, guarded_in, Failure};
use crate::handles::{self, with, world, Handle};
use jni::objects::JByteArray;
use jni::sys::{jboolean, jbyteArray, jint, jlong};
use larder::api::Table;
use larder::{Bounds, Evict, Limits};

natives! { guarded_in:
    /// The version of the library, as text.
    Java_larder_Native_version() -> jbyteArray, std::ptr::null_mut(), |env| {
        Ok(env.byte_array_from_slice(env!("CARGO_PKG_VERSION").as_bytes())?.into_raw())
    };

    /// The first call, when the library is loaded.
    Java_larder_Native_prepare(), (), |env| exceptions::look_up(env);

    /// Makes a table, an ordered_set. A time or a limit below 0 is none.
    Java_larder_Native_open(
        name: JByteArray<'_>, ttl: jlong, idle: jlong, max_size: jlong, max_memory: jlong,
        evict: jint, bounded: jboolean, compressed: jboolean,
    ) -> jlong, 0, |env| {
        let length = i32::try_from(name.len(env)?).unwrap_or(i32::MAX);
        let name = with_buffers(|buffers| {
            let bytes = name.read(env, Part { at: 0, length }, &mut buffers.key)?;
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
    };
}

fn evict_of(evict: jint) -> Result<Evict, Failure> {
    match evict {
        0 => Ok(Evict::None),
        1 => Ok(Evict::Lru),
        2 => Ok(Evict::TinyLfu),
        3 => Ok(Evict::Sieve),
        _ => Err(Failure::Argument(format!("there is no eviction {evict}"))),
    }
}

natives! { guarded:
    Java_larder_Native_close(id: jlong) -> jboolean, false, || Ok(handles::close(id));

    Java_larder_Native_snapshot(id: jlong) -> jlong, 0, || {
        let snapshot = with(id, |handle| Ok(handle.table.snapshot()?))?;
        handles::open(Handle::of_snapshot(snapshot))
    };

    /// How many tables, snapshots, views, transactions and feeds are open in the process.
    Java_larder_Native_handles() -> jlong, 0, || Ok(handles::count() as jlong);

    Java_larder_Native_size(id: jlong) -> jlong, 0, || statistic(id, Table::len);

    Java_larder_Native_memory(id: jlong) -> jlong, 0, || statistic(id, Table::memory);

    Java_larder_Native_clear(id: jlong) -> jlong, 0,
        || with(id, |handle| Ok(handle.table.clear()? as jlong));
}

/// A number that is 0 for a dropped table.
fn statistic(id: jlong, get: impl FnOnce(&Table) -> usize) -> Result<jlong, Failure> {
    with(id, |handle| {
        let number = get(&handle.table);
        // A close drops the table, and then waits for this call: the 0 isn't the table's.
        match handle.engine.is_alive() {
            true => Ok(number as jlong),
            false => Err(Failure::Closed),
        }
    })
}
