//! The owner of a blob's bytes, which the host passes: a value of any type, stored in place if it
//! is small.
//!
//! Invariant: until it is dropped, `storage` contains a `T` (or a `Box<T>`, if that is too large)
//! of the type of which `functions` was made.

use std::{
    any::{Any, TypeId},
    mem::MaybeUninit,
};

/// The number of words that are stored in place.
const WORDS_IN_PLACE: usize = 3;

/// A value that owns the bytes of a blob.
pub(super) struct Owner {
    storage: [MaybeUninit<usize>; WORDS_IN_PLACE],
    functions: &'static Functions,
}

/// The functions of one type of owner: a vtable.
struct Functions {
    type_id: fn() -> TypeId,
    value: unsafe fn(*const ()) -> *const (),
    bytes: unsafe fn(*const ()) -> *const [u8],
    drop: unsafe fn(*mut ()),
}

/// Makes the vtable of a type.
struct FunctionsOf<T>(std::marker::PhantomData<T>);

impl<T: AsRef<[u8]> + Any + Send + Sync> FunctionsOf<T> {
    const IN_PLACE: bool = size_of::<T>() <= WORDS_IN_PLACE * size_of::<usize>()
        && align_of::<T>() <= align_of::<usize>();

    const FUNCTIONS: Functions = Functions {
        type_id: TypeId::of::<T>,
        value: Self::value,
        bytes: Self::bytes,
        drop: Self::drop,
    };

    /// # Safety
    /// A `T`, or its box, lies at `storage`, as for the others below.
    unsafe fn value(storage: *const ()) -> *const () {
        match Self::IN_PLACE {
            true => storage,
            // SAFETY: what is not in place is in a box, whose address lies there.
            false => unsafe { *storage.cast::<*const ()>() },
        }
    }

    unsafe fn bytes(storage: *const ()) -> *const [u8] {
        // SAFETY: the caller's promise; the value lives as long as the owner does.
        unsafe { (*Self::value(storage).cast::<T>()).as_ref() }
    }

    unsafe fn drop(storage: *mut ()) {
        // SAFETY: the value, or its box, is dropped once, by the owner's `drop`.
        unsafe {
            match Self::IN_PLACE {
                true => storage.cast::<T>().drop_in_place(),
                false => drop(Box::from_raw(*storage.cast::<*mut T>())),
            }
        }
    }
}

// SAFETY: it holds a `T`, or its box, which is `Send`: `new` asks for it.
unsafe impl Send for Owner {}
// SAFETY: as above, `Sync`.
unsafe impl Sync for Owner {}

impl Owner {
    pub(super) fn new<T: AsRef<[u8]> + Any + Send + Sync>(value: T) -> Owner {
        let mut storage = [MaybeUninit::uninit(); WORDS_IN_PLACE];
        let place = storage.as_mut_ptr();
        // SAFETY: the storage is aligned to words and large enough for a value that `IN_PLACE` says
        // fits, or for a pointer.
        unsafe {
            match FunctionsOf::<T>::IN_PLACE {
                true => place.cast::<T>().write(value),
                false => place.cast::<*mut T>().write(Box::into_raw(Box::new(value))),
            }
        }
        Owner {
            storage,
            functions: &FunctionsOf::<T>::FUNCTIONS,
        }
    }

    fn place(&self) -> *const () {
        self.storage.as_ptr().cast()
    }

    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: the invariant; the bytes live as long as the value.
        unsafe { &*(self.functions.bytes)(self.place()) }
    }

    /// The value, if it is of this type.
    #[inline]
    pub(super) fn value<T: Any>(&self) -> Option<&T> {
        if (self.functions.type_id)() != TypeId::of::<T>() {
            return None;
        }
        // SAFETY: the invariant, and the value is a `T`.
        Some(unsafe { &*(self.functions.value)(self.place()).cast::<T>() })
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // SAFETY: the invariant; nobody uses the value afterwards.
        unsafe { (self.functions.drop)(self.storage.as_mut_ptr().cast()) }
    }
}

#[cfg(test)]
mod tests {
    use super::Owner;
    use std::sync::Arc;

    struct Large([u8; 99], Arc<()>);

    impl Drop for Large {
        fn drop(&mut self) {
            assert_eq!((self.0[98], Arc::strong_count(&self.1)), (7, 2));
        }
    }

    impl AsRef<[u8]> for Large {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }

    struct Small(Arc<[u8]>);

    impl AsRef<[u8]> for Small {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }

    #[test]
    fn values_in_place_and_in_a_box() {
        let (alive, bytes) = (Arc::new(()), Arc::<[u8]>::from(&b"some"[..]));
        let large = Owner::new(Large([7; 99], Arc::clone(&alive)));
        let small = Owner::new(Small(Arc::clone(&bytes)));
        assert_eq!((large.bytes(), small.bytes()), (&[7; 99][..], &b"some"[..]));
        assert!(large.value::<Large>().is_some() && large.value::<Small>().is_none());
        assert!(small
            .value::<Small>()
            .is_some_and(|s| Arc::ptr_eq(&s.0, &bytes)));
        assert_eq!(
            (Arc::strong_count(&alive), Arc::strong_count(&bytes)),
            (2, 2)
        );
        drop((large, small));
        assert_eq!(
            (Arc::strong_count(&alive), Arc::strong_count(&bytes)),
            (1, 1)
        );
    }
}
