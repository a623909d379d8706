//! Tables saved and loaded.

use super::rows::text_of;
use crate::arrays::{with_buffers, Bytes, Part};
use crate::failure::{guarded_in, Failure};
use crate::handles::{self, with, world, Handle};
use crate::item::Item;
use jni::objects::JByteArray;
use jni::sys::jlong;
use jni::Env;
use larder::{Direction, Error, FileError, TableKind};
use std::io::ErrorKind;
use std::ops::Bound;

/// Calls `f` with the path that Java passes.
fn with_path<R>(
    env: &Env<'_>,
    path: &JByteArray<'_>,
    f: impl FnOnce(&str) -> Result<R, Failure>,
) -> Result<R, Failure> {
    let length = i32::try_from(path.len(env)?).unwrap_or(i32::MAX);
    let path = with_buffers(|buffers| {
        let bytes = path.read(env, Part { at: 0, length }, &mut buffers.key)?;
        text_of(Item::Bytes(bytes), "the path").map(str::to_owned)
    })?;
    // Java has an exception of its own for a missing file, which names the path.
    f(&path).map_err(|failure| match failure {
        Failure::Engine(Error::File(error)) if is_missing(&error) => Failure::NoFile(path),
        failure => failure,
    })
}

fn is_missing(error: &FileError) -> bool {
    matches!(error, FileError::Io { kind, .. } if *kind == ErrorKind::NotFound)
}

/// Checks that a table is one that Java may have: ordered, of pairs of integers and bytes.
fn check(handle: &Handle) -> Result<(), Failure> {
    let (kind, keypos) = (handle.engine.kind(), handle.engine.keypos());
    if kind != TableKind::OrderedSet || keypos != 1 {
        return Err(Failure::File(format!(
            "the file has a table of type {kind:?} with its keys at position {keypos}, but must \
             have an OrderedSet with its keys at position 1"
        )));
    }
    // Read every row once. Each must be a pair of what `Item` can be.
    let all = (Bound::Unbounded, Bound::Unbounded);
    let checked = handle.page(all, Direction::Forward, usize::MAX, |_, _| {});
    match checked {
        Err(Failure::Stored(text)) => Err(Failure::File(format!("the file has a row: {text}"))),
        checked => checked.map(|_| ()),
    }
}

natives! { guarded_in:
    Java_larder_Native_save(id: jlong, path: JByteArray<'_>), (), |env| {
        // The number may be closed meanwhile: then the save ends with `NoTable`.
        let table = with(id, |handle| Ok(handle.table.clone()))?;
        with_path(env, &path, |path| Ok(table.save(path)?))
    };

    Java_larder_Native_load(path: JByteArray<'_>) -> jlong, 0, |env| {
        // Java finds no table by its name. So several may be loaded that others have named alike.
        let table = with_path(env, &path, |path| Ok(world().load_unnamed(path)?))?;
        let handle = Handle::of_table(table);
        if let Err(failure) = check(&handle) {
            // The only error is that it is dropped already.
            let _ = handle.table.drop_table();
            return Err(failure);
        }
        handles::open(handle)
    };
}
