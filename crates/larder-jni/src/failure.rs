//! The errors of native methods, and the panic guard under which each method runs.

use jni::errors::{Error as JvmError, JniError};
use jni::strings::{JNIStr, JNIString};
use jni::{jni_str, Env, EnvUnowned};
use larder::Error;
use std::any::Any;
use std::panic::{catch_unwind, AssertUnwindSafe};

/// Why a native method had no effect.
pub(crate) enum Failure {
    /// No open resource has the number.
    Closed,
    /// The engine's error.
    Engine(Error),
    /// An argument that can't be used; the text says why.
    Argument(String),
    /// A stored term that Java's side can't have written; the text says which.
    Stored(String),
    /// A file's table isn't one of Java's; the text says why.
    File(String),
    /// There is no such file or folder.
    NoFile(String),
    /// A fault within the library.
    Panic(String),
    /// The JVM's error; an exception may be pending.
    Jvm(JvmError),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Engine(error)
    }
}

impl From<JvmError> for Failure {
    fn from(error: JvmError) -> Self {
        Failure::Jvm(error)
    }
}

impl Failure {
    /// The class and the message of the exception.
    fn exception(&self) -> (&'static JNIStr, String) {
        match self {
            Failure::Closed => (
                jni_str!("java/lang/IllegalStateException"),
                "the table is closed, or the transaction of the view is over".to_owned(),
            ),
            Failure::Engine(Error::NoTable) => (
                jni_str!("java/lang/IllegalStateException"),
                "the table is closed".to_owned(),
            ),
            Failure::Engine(
                error @ (Error::ReadOnly | Error::Unranked | Error::TableType | Error::View),
            ) => (
                jni_str!("java/lang/UnsupportedOperationException"),
                error.to_string(),
            ),
            Failure::Engine(Error::File(error)) => {
                (jni_str!("java/io/IOException"), error.to_string())
            }
            Failure::Engine(Error::Unbounded) => (
                jni_str!("java/lang/UnsupportedOperationException"),
                "the table keeps no times: make it with ttl, idle or expiring".to_owned(),
            ),
            Failure::Engine(Error::Full(text)) => {
                (jni_str!("larder/LimitException"), text.to_string())
            }
            Failure::Engine(error @ (Error::BadOption(_) | Error::BadSpec(_))) => (
                jni_str!("java/lang/IllegalArgumentException"),
                error.to_string(),
            ),
            Failure::NoFile(path) => (jni_str!("java/nio/file/NoSuchFileException"), path.clone()),
            Failure::File(text) => (jni_str!("java/io/IOException"), text.clone()),
            Failure::Argument(text) => {
                (jni_str!("java/lang/IllegalArgumentException"), text.clone())
            }
            Failure::Engine(error) => (jni_str!("larder/LarderException"), error.to_string()),
            Failure::Stored(text) | Failure::Panic(text) => {
                (jni_str!("larder/LarderException"), text.clone())
            }
            // The crate `jni` clears these two exceptions and returns an error instead. They are
            // thrown again as the same classes.
            Failure::Jvm(JvmError::JniCall(JniError::NoMemory)) => (
                jni_str!("java/lang/OutOfMemoryError"),
                "Java has no memory for the reply".to_owned(),
            ),
            Failure::Jvm(JvmError::IndexOutOfBounds) => (
                jni_str!("java/lang/IndexOutOfBoundsException"),
                "the array is too short".to_owned(),
            ),
            Failure::Jvm(error) => (jni_str!("larder/LarderException"), error.to_string()),
        }
    }

    /// Throws the exception, unless one is pending already, which says more.
    fn throw(&self, env: &mut Env<'_>) {
        if env.exception_check() {
            return;
        }
        let (class, text) = self.exception();
        // `throw_new` reports an error if an exception is pending now. That is this one, or the one
        // that prevented it, such as an OutOfMemoryError. Java sees either.
        let _ = env.throw_new(class, JNIString::from(text));
    }
}

/// Runs `f`, which uses no Java objects. If it fails, throws the exception and returns `failed`.
#[inline]
pub(crate) fn guarded<R>(
    mut env: EnvUnowned<'_>,
    failed: R,
    f: impl FnOnce() -> Result<R, Failure>,
) -> R {
    // The call gets no `Env`. So the common case costs no more than the panic guard.
    match caught(f) {
        Ok(result) => result,
        Err(failure) => {
            throw(&mut env, &failure);
            failed
        }
    }
}

/// As `guarded`, for an `f` that reads or makes Java objects.
#[inline]
pub(crate) fn guarded_in<'l, R>(
    mut env: EnvUnowned<'l>,
    failed: R,
    f: impl FnOnce(&mut Env<'l>) -> Result<R, Failure>,
) -> R {
    let mut result = Err(Failure::Panic(String::new()));
    let outcome = env.with_env_no_catch(|env| {
        // `f` has returned when the exception is thrown. So no table has a user and no buffer is
        // borrowed while Java runs the constructor of the exception.
        result = caught(|| f(env));
        if let Err(failure) = &result {
            failure.throw(env);
        }
        Ok::<(), JvmError>(())
    });
    // The outcome is that of the closure, which is always `Ok`: the failure was thrown above.
    drop(outcome.into_outcome());
    result.unwrap_or(failed)
}

#[cold]
fn throw(env: &mut EnvUnowned<'_>, failure: &Failure) {
    let outcome = env.with_env_no_catch(|env| {
        failure.throw(env);
        Ok::<(), JvmError>(())
    });
    drop(outcome.into_outcome());
}

#[inline]
fn caught<R>(f: impl FnOnce() -> Result<R, Failure>) -> Result<R, Failure> {
    // `AssertUnwindSafe`: what `f` has built is dropped by the panic. Only the engine's structures
    // are used afterwards. They are consistent at each instant: a write has taken effect, or not.
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|panic| Err(panicked(panic)))
}

#[cold]
fn panicked(panic: Box<dyn Any + Send>) -> Failure {
    // A panic carries a `String` if its message was formatted, and a `&str` if it was a literal.
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    let failure = Failure::Panic(format!(
        "a fault within the library: {}",
        text.unwrap_or("a panic without a message")
    ));
    // The payload of a panic may panic when it is dropped, and no panic may leave the library.
    std::mem::forget(panic);
    failure
}
