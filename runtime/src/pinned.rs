//! Heap memory that native code holds addresses of: it does not move, and Rust makes no reference to
//! it that lives longer than one access.

use std::ptr::NonNull;

/// An owned heap allocation that is accessed through raw pointers only, so that accesses by native
/// code, which happen behind the compiler's back, never conflict with a Rust reference.
#[derive(Debug)]
pub(crate) struct Pinned<T: ?Sized>(NonNull<T>);

impl<T: ?Sized> Pinned<T> {
    /// Takes over an allocation.
    pub(crate) fn from_box(value: Box<T>) -> Pinned<T> {
        Pinned(NonNull::from(Box::leak(value)))
    }

    /// The address; valid for reads and writes until the owner is dropped.
    pub(crate) fn as_ptr(&self) -> *mut T {
        self.0.as_ptr()
    }
}

impl<T> Pinned<T> {
    pub(crate) fn new(value: T) -> Pinned<T> {
        Pinned::from_box(Box::new(value))
    }
}

impl<T> Pinned<[T]> {
    /// The address of the first element.
    pub(crate) fn first(&self) -> *mut T {
        self.as_ptr().cast()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

impl<T: ?Sized> Drop for Pinned<T> {
    fn drop(&mut self) {
        // SAFETY: the pointer comes from `Box::leak`, and nothing else frees it.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}
