//! The heap of the host: objects that move at each call of a host function, and at some polls.
//!
//! A reference is null, an odd number, which names nothing, or the address of an object. Whenever a host function is called,
//! all objects that a root names get new addresses, and all others are gone. An address is never used again, so a root or an
//! argument that is no address of this time was lost or not updated.

use std::collections::HashMap;

/// Objects, each with the number that it was made of, by address.
#[derive(Debug, Default)]
pub(super) struct Heap {
    objects: HashMap<u64, u64>,
    next: u64,
}

impl Heap {
    /// Makes an object.
    pub(super) fn alloc(&mut self, number: u64) -> u64 {
        let address = self.next_address();
        self.objects.insert(address, number);
        address
    }

    /// Whether there are no objects.
    pub(super) fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    fn next_address(&mut self) -> u64 {
        self.next += 16;
        self.next
    }

    /// A number for a reference, the same in all engines: null, an odd number, or the object's number with a mark.
    ///
    /// # Panics
    /// Panics if it is none of this time.
    pub(super) fn known(&self, reference: u64) -> u128 {
        match reference {
            0 => 0,
            odd if odd & 1 == 1 => odd.into(),
            address => match self.objects.get(&address) {
                Some(&number) => u128::from(number) | 1 << 64,
                None => panic!("{address:#x} is no reference of this time"),
            },
        }
    }

    /// Moves all objects that roots name, and forgets all others. `visit` shows each root to the function that it gets.
    pub(super) fn collect(&mut self, visit: impl FnOnce(&mut dyn FnMut(&mut u64))) {
        let mut moved: HashMap<u64, u64> = HashMap::new();
        let mut objects = HashMap::new();
        visit(&mut |root| {
            if *root & 1 == 1 {
                return;
            }
            let number = self.objects.get(root).copied();
            let number =
                number.unwrap_or_else(|| panic!("a root is {root:#x}, no reference of this time"));
            let old = *root;
            *root = *moved.entry(old).or_insert_with(|| {
                self.next += 16;
                objects.insert(self.next, number);
                self.next
            });
        });
        self.objects = objects;
    }
}
