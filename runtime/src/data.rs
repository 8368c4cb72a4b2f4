//! The embedder's data, which a store keeps without knowing their type.

use std::any::{Any, TypeId};

/// A value of any type. Asking for it by its type takes a comparison, and no call as it does with a box.
pub struct Data {
    value: Box<dyn Any + Send>,
    /// The type of what the box holds.
    type_id: TypeId,
}

impl Data {
    /// The value in a box.
    pub fn new(value: Box<dyn Any + Send>) -> Data {
        Data { type_id: (*value).type_id(), value }
    }

    /// The value, whatever its type is.
    #[inline]
    pub fn any(&self) -> &(dyn Any + Send) {
        &*self.value
    }

    /// The value, whatever its type is.
    #[inline]
    pub fn any_mut(&mut self) -> &mut (dyn Any + Send) {
        &mut *self.value
    }

    /// The value, if it is of this type.
    #[inline]
    pub fn get<D: Any>(&self) -> Option<&D> {
        let value = &raw const *self.value;
        // SAFETY: the box holds a `D`, as `new` has found, and is borrowed as long as the result.
        (self.type_id == TypeId::of::<D>()).then(|| unsafe { &*value.cast::<D>() })
    }

    /// The value, if it is of this type.
    #[inline]
    pub fn get_mut<D: Any>(&mut self) -> Option<&mut D> {
        let value = &raw mut *self.value;
        // SAFETY: the box holds a `D`, as `new` has found, and is borrowed exclusively as long as the result.
        (self.type_id == TypeId::of::<D>()).then(|| unsafe { &mut *value.cast::<D>() })
    }

    /// The value in its box.
    pub fn into_box(self) -> Box<dyn Any + Send> {
        self.value
    }
}
