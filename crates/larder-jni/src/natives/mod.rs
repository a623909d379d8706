//! The native methods of `larder.Native`, by the types of their arguments and results.
//!
//! | module | methods |
//! |---|---|
//! | `tables` | making tables, closing them, information about them |
//! | `longs` | keys and values that are longs: no object of Java's is accessed |
//! | `bytes` | keys or values in Java's arrays and buffers; no memory is allocated |
//! | `rows` | keys and values of any kind, in one array each way |
//! | `transactions` | transactions, and lists of conditional operations |
//! | `feeds` | subscriptions |
//! | `files` | saving and loading tables |
//!
//! Each method first copies its arguments from Java, then uses the table, and then writes to Java.
//! So while it uses the table, it never waits for the JVM.

/// Declares native methods: the name, the arguments, the type of the result, the result after an
/// exception, and the function. `guarded` or `guarded_in` turns an error of the function into an
/// exception.
macro_rules! natives {
    ($guard:ident: $(
        $(#[$doc:meta])*
        $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $answer:ty)?, $failed:expr, $f:expr;
    )*) => {$(
        $(#[$doc])*
        #[no_mangle]
        extern "system" fn $name(
            env: jni::EnvUnowned<'_>,
            _class: jni::objects::JClass<'_>,
            $($argument: $type),*
        ) $(-> $answer)? {
            $guard(env, $failed, $f)
        }
    )*};
}

mod bytes;
mod feeds;
mod files;
mod longs;
mod rows;
mod tables;
mod transactions;
