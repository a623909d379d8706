//! *Resources*: values of this library that the emulator's garbage collector owns.
//!
//! A resource is a Rust value in memory that the emulator allocates. Terms refer to it. When the
//! last reference is gone, the emulator calls the destructor, on any of its threads.
//! [`Registered<T>`] ties a registered resource type to the Rust type of its values.

mod pointer;

use crate::call::Call;
use crate::layout;
use crate::sys::callback;
use crate::sys::*;
pub use pointer::{object, prove, prove_objects, reference_to, Sample};
use std::ffi::{c_uint, c_void, CStr};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The callback for the end of monitored processes, which `Registered::open` registers.
pub type DownCallback = unsafe extern "C" fn(*mut Env, *mut c_void, *mut Pid, *mut Monitor);

/// A registered resource type whose values are `T`s.
pub struct Registered<T> {
    registered: AtomicPtr<ResourceType>,
    values: PhantomData<fn(T)>,
}

unsafe extern "C" fn destroy<T>(env: *mut Env, object: *mut c_void) {
    callback::run(env, || {
        // SAFETY: the emulator calls the destructor once, with memory that `Registered::make` wrote
        // a `T` to, when nobody refers to it any more.
        unsafe { std::ptr::drop_in_place(object.cast::<T>()) }
    });
}

impl<T: Send + Sync + 'static> Registered<T> {
    /// A type that is not registered yet.
    pub const fn new() -> Self {
        Registered {
            registered: AtomicPtr::new(std::ptr::null_mut()),
            values: PhantomData,
        }
    }

    /// Registers the type, or takes it over from old code of the module. Must be called when the
    /// library is loaded.
    pub fn open(&self, env: *mut Env, name: &CStr, down: Option<DownCallback>) -> bool {
        const { assert!(std::mem::align_of::<T>() <= 8) };
        let init = ResourceTypeInit {
            dtor: Some(destroy::<T>),
            stop: None,
            down,
        };
        let mut tried: c_uint = 0;
        // SAFETY: `env` is the environment of the running load callback; name and init live during
        // the call.
        let opened = unsafe {
            enif_open_resource_type_x(
                env,
                name.as_ptr(),
                &init,
                RT_CREATE | RT_TAKEOVER,
                &mut tried,
            )
        };
        // Ordering: Relaxed; written at load, before any other function of the library can run.
        self.registered.store(opened, Ordering::Relaxed);
        !opened.is_null()
    }

    #[inline]
    fn kind(&self) -> *mut ResourceType {
        // Ordering: Relaxed, see `open`.
        self.registered.load(Ordering::Relaxed)
    }

    /// Moves a value to a new resource.
    pub fn make(&'static self, value: T) -> ResourceRef<T> {
        // SAFETY: the type is registered; the memory holds a `T`, is aligned to 8 bytes, and
        // is written before anybody can see it.
        let object = unsafe {
            let object = enif_alloc_resource(self.kind(), std::mem::size_of::<T>()).cast::<T>();
            object.write(value);
            object
        };
        ResourceRef { object }
    }

    /// The value that a term of the call refers to, if it is of this type. The term keeps it alive
    /// until the call ends.
    #[inline]
    pub fn get<'c>(&self, call: &'c Call<'_>, word: Word) -> Option<&'c T> {
        match pointer::value(word, self.kind()) {
            // SAFETY: resources of this type hold a `T`; the term keeps it alive while the call
            // runs, which `'c` doesn't outlive.
            Some(value) => Some(unsafe { &*value.cast::<T>() }),
            // The term of a resource is boxed; a table's name is none.
            None if !layout::is_boxed(word) => None,
            None => self.official_get(call, word),
        }
    }

    /// As `get`, but a counted reference, which may outlive the call.
    pub fn hold(&'static self, call: &Call<'_>, word: Word) -> Option<ResourceRef<T>> {
        let object: *const T = self.get(call, word)?;
        // SAFETY: the object is a resource, which the call's term keeps alive. The count is given
        // back when the reference is dropped.
        unsafe { enif_keep_resource(object.cast_mut().cast()) };
        Some(ResourceRef {
            object: object.cast_mut(),
        })
    }

    #[inline(never)]
    fn official_get<'c>(&self, call: &'c Call<'_>, word: Word) -> Option<&'c T> {
        let mut object = std::ptr::null_mut();
        // SAFETY: the environment and the term are the running call's, and the type is registered.
        if unsafe { enif_get_resource(call.env, word, self.kind(), &mut object) } == 0 {
            return None;
        }
        // SAFETY: as in `get`.
        Some(unsafe { &*object.cast::<T>() })
    }

    /// A resource that serves as a sample for finding out the layout of resources.
    pub fn sample(&'static self, env: *mut Env, value: T) -> pointer::Sample {
        let held = self.make(value);
        pointer::Sample {
            word: held.term(env),
            kind: self.kind(),
            value: held.object.cast(),
        }
    }
}

/// A reference to a resource that is not a term.
pub struct ResourceRef<T> {
    object: *mut T,
}

// SAFETY: it is a counted reference to a `T` that threads may share; the count is the emulator's
// and atomic.
unsafe impl<T: Send + Sync> Send for ResourceRef<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for ResourceRef<T> {}

impl<T> ResourceRef<T> {
    /// The term that refers to the resource. All terms of the same resource are equal.
    pub fn term(&self, env: *mut Env) -> Word {
        // SAFETY: the object is alive, since we hold a count; `env` is the running call's or a
        // message's.
        unsafe { enif_make_resource(env, self.object.cast()) }
    }

    /// Makes a binary of these bytes, which the resource keeps alive.
    ///
    /// # Safety
    /// The bytes belong to something that the resource's value owns. They are neither moved nor
    /// changed.
    pub unsafe fn binary(&self, env: *mut Env, bytes: *const u8, size: usize) -> Word {
        // SAFETY: the object is alive, and the caller answers for the bytes.
        unsafe { enif_make_resource_binary(env, self.object.cast(), bytes.cast(), size) }
    }

    /// Monitors a process: the callback of the resource's type is called when the process ends.
    /// Returns `false` if it has already ended.
    pub fn monitor(&self, env: *mut Env, pid: &Pid) -> bool {
        let mut monitor = Monitor::empty();
        // SAFETY: the object is alive and its type was opened with a `down` callback (the caller's
        // choice of type; without one the call answers a negative number).
        unsafe { enif_monitor_process(env, self.object.cast(), pid, &mut monitor) == 0 }
    }
}

impl<T> Clone for ResourceRef<T> {
    fn clone(&self) -> Self {
        // SAFETY: the count that we hold keeps the object alive. The new one is given back when the
        // clone is dropped.
        unsafe { enif_keep_resource(self.object.cast()) };
        ResourceRef {
            object: self.object,
        }
    }
}

impl<T> std::ops::Deref for ResourceRef<T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the count that we hold keeps the value alive; it is only ever shared.
        unsafe { &*self.object }
    }
}

impl<T> Drop for ResourceRef<T> {
    fn drop(&mut self) {
        // SAFETY: gives back the count that this value held, once.
        unsafe { enif_release_resource(self.object.cast()) }
    }
}
