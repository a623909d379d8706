//! Java's arrays and buffers, copied in and out.

use crate::failure::Failure;
use crate::handles;
use crate::wire::Reply;
use jni::objects::{JByteArray, JByteBuffer, JLongArray};
use jni::sys::{jlong, jsize};
use jni::Env;
use std::cell::Cell;

/// Buffers with a larger capacity together aren't kept.
const MAX_KEPT: usize = 64 << 10;

/// The buffers to which a thread copies.
#[derive(Default)]
pub(crate) struct Buffers {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
    pub(crate) reply: Reply,
}

thread_local! {
    static KEPT: Cell<Option<Box<Buffers>>> = const { Cell::new(None) };
}

/// Calls `f` with the thread's buffers.
#[inline]
pub(crate) fn with_buffers<R>(f: impl FnOnce(&mut Buffers) -> R) -> R {
    // The buffers are taken out of the cell, so they are never lent twice. A panic drops them, and
    // the next call makes new ones.
    let mut buffers = KEPT.try_with(Cell::take).ok().flatten().unwrap_or_default();
    let result = f(&mut buffers);
    let (key, value) = (buffers.key.capacity(), buffers.value.capacity());
    if key + value + buffers.reply.capacity() <= MAX_KEPT {
        // A thread that exits keeps no buffers.
        let _ = KEPT.try_with(|kept| kept.set(Some(buffers)));
    }
    result
}

/// A part of an array or of a direct buffer: where it begins, and how long it is.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    pub(crate) at: i32,
    pub(crate) length: i32,
}

/// Bytes on Java's side: an array, or a direct buffer.
pub(crate) trait Bytes {
    /// Whether it is Java's null.
    fn is_nothing(&self) -> bool;

    /// The bytes of a part, in `out`.
    ///
    /// # Errors
    /// `Jvm` if the part is outside an array; `Argument` if it is outside a buffer, or the buffer
    /// isn't direct.
    fn read<'o>(
        &self,
        env: &Env<'_>,
        part: Part,
        out: &'o mut Vec<u8>,
    ) -> Result<&'o [u8], Failure>;

    /// Writes bytes at an offset.
    ///
    /// # Errors
    /// As `read`, if they don't fit after the offset.
    fn write(&self, env: &Env<'_>, at: i32, bytes: &[u8]) -> Result<(), Failure>;
}

impl Bytes for JByteArray<'_> {
    #[inline]
    fn is_nothing(&self) -> bool {
        self.is_null()
    }

    #[inline]
    fn read<'o>(
        &self,
        env: &Env<'_>,
        part: Part,
        out: &'o mut Vec<u8>,
    ) -> Result<&'o [u8], Failure> {
        let length = usize::try_from(part.length).map_err(|_| outside())?;
        // The JVM checks the part, and copies to memory that must be initialised. `out` mostly has
        // the capacity from an earlier call.
        out.clear();
        out.resize(length, 0);
        self.get_region(env, part.at as jsize, signed_mut(out))?;
        Ok(out)
    }

    #[inline]
    fn write(&self, env: &Env<'_>, at: i32, bytes: &[u8]) -> Result<(), Failure> {
        Ok(self.set_region(env, at as jsize, signed(bytes))?)
    }
}

impl Bytes for JByteBuffer<'_> {
    #[inline]
    fn is_nothing(&self) -> bool {
        self.is_null()
    }

    #[inline]
    fn read<'o>(
        &self,
        env: &Env<'_>,
        part: Part,
        out: &'o mut Vec<u8>,
    ) -> Result<&'o [u8], Failure> {
        let (from, length) = address_of(env, self, part)?;
        out.clear();
        out.reserve(length);
        // SAFETY: `from` is readable for `length` bytes while the argument refers to the buffer.
        // `out` has room for as many, and is no memory of Java's, so the two don't overlap. Another
        // thread may write to the buffer meanwhile. Then some of the bytes are old and some new,
        // but each is a byte. They are copied once, and only the copy is looked at.
        unsafe {
            std::ptr::copy_nonoverlapping(from, out.as_mut_ptr(), length);
            out.set_len(length);
        }
        Ok(out)
    }

    #[inline]
    fn write(&self, env: &Env<'_>, at: i32, bytes: &[u8]) -> Result<(), Failure> {
        let length = i32::try_from(bytes.len()).map_err(|_| outside())?;
        let (to, length) = address_of(env, self, Part { at, length })?;
        // SAFETY: `to` is writable for `length` bytes while the argument refers to the buffer.
        // Java's side refuses read-only buffers. `bytes` are this thread's copy, so the two don't
        // overlap.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, length) };
        Ok(())
    }
}

/// Copies the reply to the array that Java offers, if it fits, and otherwise to a new one.
///
/// # Errors
/// `Argument` if the reply is too long for any array; `Jvm` if there is no memory.
pub(crate) fn answer<'l>(
    env: &mut Env<'l>,
    offered: JByteArray<'l>,
    reply: &Reply,
) -> Result<JByteArray<'l>, Failure> {
    let bytes = reply.bytes();
    if i32::try_from(bytes.len()).is_err() {
        let text = "the reply is too long for an array";
        return Err(Failure::Argument(text.into()));
    }
    // Java keeps one array for each thread. It takes no new one while replies are short.
    if offered.len(env)? >= bytes.len() {
        offered.write(env, 0, bytes)?;
        return Ok(offered);
    }
    Ok(env.byte_array_from_slice(bytes)?)
}

/// Writes the numbers of opened resources to an array that Java has made before. So Java allocates
/// nothing between the moment at which they are open and the one at which it has them.
///
/// # Errors
/// `Jvm` if the array has no room for them; they are closed then.
pub(crate) fn hand_over(
    env: &Env<'_>,
    into: &JLongArray<'_>,
    opened: &[jlong],
) -> Result<(), Failure> {
    into.set_region(env, 0, opened).map_err(|error| {
        opened.iter().for_each(|number| {
            handles::close(*number);
        });
        Failure::Jvm(error)
    })
}

/// The address and the length of a part of a direct buffer.
///
/// # Errors
/// `Argument` if the part is outside the buffer, or the buffer isn't direct.
fn address_of(
    env: &Env<'_>,
    buffer: &JByteBuffer<'_>,
    part: Part,
) -> Result<(*mut u8, usize), Failure> {
    let capacity = env.get_direct_buffer_capacity(buffer)?;
    let (Ok(at), Ok(length)) = (usize::try_from(part.at), usize::try_from(part.length)) else {
        return Err(outside());
    };
    // The part is checked here as well as in Java: a wrong one would be other memory.
    if at.checked_add(length).is_none_or(|end| end > capacity) {
        return Err(outside());
    }
    if length == 0 {
        // An empty buffer may have no address.
        return Ok((std::ptr::NonNull::dangling().as_ptr(), 0));
    }
    let address = env.get_direct_buffer_address(buffer)?;
    // SAFETY: the buffer has `capacity` bytes from its address on, and the end of the part is not
    // beyond them, as was checked.
    Ok((unsafe { address.add(at) }, length))
}

#[cold]
fn outside() -> Failure {
    Failure::Argument("the part is outside the array or the buffer".into())
}

/// Bytes as Java has them.
#[inline]
fn signed(bytes: &[u8]) -> &[i8] {
    // SAFETY: u8 and i8 have the same size and alignment, and every byte is a value of both. The
    // slice that is made borrows the one it is made of.
    unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len()) }
}

#[inline]
fn signed_mut(bytes: &mut [u8]) -> &mut [i8] {
    // SAFETY: as in `signed`. The slice is borrowed mutably for as long as the one made of it.
    unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), bytes.len()) }
}
