//! The native methods of `larder.Native`, by the shape of what they take and give.
//!
//! | module | methods |
//! |---|---|
//! | `tables` | tables made, closed, asked about |
//! | `longs` | keys and values that are longs: nothing of Java's is touched |
//! | `bytes` | keys or values in Java's arrays and buffers, where nothing is allocated |
//! | `rows` | keys and values of any kind, in one array each way |
//! | `transactions` | transactions, and lists of conditional operations |
//! | `feeds` | subscriptions |
//! | `files` | tables saved and loaded |
//!
//! Each takes what it needs from Java, then uses the table, then writes to Java: a table's user
//! never waits for the JVM.

/// Declares native methods: the name, what it takes, what it gives, what it gives after it has
/// thrown, and what it does. `guarded` or `guarded_in` throws what that fails with.
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
