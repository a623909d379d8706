//! Tables saved and loaded.

use super::rows::text_of;
use crate::arrays::{with_buffers, Bytes, Part};
use crate::failure::{guarded_in, Failure};
use crate::handles::{self, with, world, Handle};
use crate::item::Item;
use jni::objects::JByteArray;
use jni::sys::jlong;
use jni::Env;
use larder::{Direction, TableKind};
use std::ops::Bound;
use std::path::PathBuf;

/// The path that Java passes.
fn path_of(env: &Env<'_>, path: &JByteArray<'_>) -> Result<PathBuf, Failure> {
    let length = i32::try_from(path.len(env)?).unwrap_or(i32::MAX);
    with_buffers(|buffers| {
        let bytes = path.read(env, Part { at: 0, length }, &mut buffers.key)?;
        Ok(PathBuf::from(text_of(Item::Bytes(bytes), "the path")?))
    })
}

/// Checks that a table is one that Java may have: ordered, of pairs of integers and bytes.
fn check(handle: &Handle) -> Result<(), Failure> {
    let (kind, keypos) = (handle.engine.kind(), handle.engine.keypos());
    if kind != TableKind::OrderedSet || keypos != 1 {
        return Err(Failure::File(format!(
            "the file has a table of type {kind:?} with its keys at position {keypos}, and is to \
             have an OrderedSet with its keys at position 1"
        )));
    }
    let all = (Bound::Unbounded, Bound::Unbounded);
    let checked = handle.page(all, (Direction::Forward, usize::MAX), |_, _| {});
    match checked {
        Err(Failure::Stored(text)) => Err(Failure::File(format!("the file has a row: {text}"))),
        checked => checked.map(|_| ()),
    }
}

natives! { guarded_in:
    Java_larder_Native_save(id: jlong, path: JByteArray<'_>), (), |env| {
        let path = path_of(env, &path)?;
        // The number may be closed meanwhile: then the save ends with `NoTable`.
        let table = with(id, |handle| Ok(handle.table.clone()))?;
        Ok(table.save(path)?)
    };

    Java_larder_Native_load(path: JByteArray<'_>) -> jlong, 0, |env| {
        let path = path_of(env, &path)?;
        let handle = Handle::of_table(world().load(path)?);
        if let Err(failure) = check(&handle) {
            // The only error is that it is gone already.
            let _ = handle.table.drop_table();
            return Err(failure);
        }
        handles::open(handle)
    };
}
