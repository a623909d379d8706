//! The exceptions of Java that the crate `jni` catches.
//!
//! The crate looks up an exception's class when it first catches one. If that is an
//! OutOfMemoryError, the look-up fails for want of memory, the crate catches that, and looks up the
//! class again, until the stack ends. So all of them are looked up when the library is loaded.

use crate::failure::Failure;
use jni::exceptions::*;
use jni::refs::{LoaderContext, Reference};
use jni::Env;

/// Looks up the classes, which the crate keeps.
pub(crate) fn look_up(env: &Env<'_>) -> Result<(), Failure> {
    let around = LoaderContext::None;
    macro_rules! look_up {
        ($($exception:ident)*) => {$( $exception::lookup_class(env, &around)?; )*};
    }
    look_up! {
        JArrayIndexOutOfBoundsException JArrayStoreException JClassCircularityError
        JClassFormatError JClassNotFoundException JExceptionInInitializerError
        JIllegalArgumentException JIllegalMonitorStateException JInstantiationException
        JLinkageError JNoClassDefFoundError JNoSuchFieldError JNoSuchMethodError
        JNumberFormatException JOutOfMemoryError JRuntimeException JSecurityException
        JStringIndexOutOfBoundsException
    }
    Ok(())
}
