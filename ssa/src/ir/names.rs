//! Names of slots and values, for people.
//!
//! A slot has the name of the local that it stands for, and so has each value that the local holds. Compiling does
//! without: a function has names only after [`Function::take_names`], or if the text that it was parsed from has them.
//! Then the passes keep them:
//! * Inlining keeps the names of the callee's locals.
//! * Promotion names each phi after its slot, and each value that was written to a slot, unless it has a name.
//! * What replaces a value takes over its name, unless it has one.
//!
//! In texts a slot is a *key*, which follows from its origin, and its name after a dot: `s2.x` is local 2, whose name is
//! `x`; `stack1` is the operand at depth 1; `inlined5.y` is slot 5, which came with an inlined function. A value is its
//! number and its name, `v7.x`.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use slotvm_bytecode::VerifiedModule;
use slotvm_bytecode::text::literal;

use crate::ir::entity::{Slot, Value};
use crate::ir::{Entry, Function, SlotOrigin};

/// Longer names of locals are left out, since a text has them at each use. In bytes.
const SHOWN_NAME_BYTES_MAX: usize = 256;

/// The names of a function's slots and values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    slots: BTreeMap<Slot, Name>,
    values: HashMap<Value, Name>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Name {
    text: Arc<str>,
    /// The local that it is the name of, if that is one of the function itself.
    local: Option<u32>,
}

impl Name {
    fn new(text: &str) -> Name {
        Name { text: text.into(), local: None }
    }

    fn of_local(text: &str, local: u32) -> Name {
        Name { local: Some(local), ..Name::new(text) }
    }

    /// The name in a function that this one was inlined into.
    fn inlined(&self) -> Name {
        Name { local: None, ..self.clone() }
    }
}

impl Names {
    /// Names a slot.
    pub(crate) fn name_slot(&mut self, slot: Slot, name: &str) {
        self.slots.insert(slot, Name::new(name));
    }

    /// Names a value.
    pub(crate) fn name_value(&mut self, value: Value, name: &str) {
        self.values.insert(value, Name::new(name));
    }

    /// Names a value after a slot, unless it has a name.
    pub(crate) fn name_after_slot(&mut self, value: Value, slot: Slot) {
        if let Some(name) = self.slots.get(&slot) {
            self.values.entry(value).or_insert_with(|| name.clone());
        }
    }

    /// Names a slot after a value, unless it has a name.
    pub(crate) fn name_slot_after(&mut self, slot: Slot, value: Value) {
        if let Some(name) = self.values.get(&value) {
            self.slots.entry(slot).or_insert_with(|| name.clone());
        }
    }

    /// Gives the name of a value to another one, unless that has one.
    pub(crate) fn pass_on(&mut self, from: Value, to: Value) {
        if let Some(name) = self.values.get(&from) {
            let name = name.clone();
            self.values.entry(to).or_insert(name);
        }
    }

    /// Forgets the names of the slots from a number on.
    pub(crate) fn truncate_slots(&mut self, n_slots: usize) {
        self.slots.split_off(&Slot::new(n_slots));
    }

    /// Adds the names of an inlined function whose first slot and first value have these numbers here.
    pub(crate) fn append(&mut self, names: &Names, first_slot: u32, first_value: u32) {
        let slots = names.slots.iter();
        self.slots.extend(slots.map(|(slot, name)| (Slot(slot.0 + first_slot), name.inlined())));
        let values = names.values.iter();
        self.values.extend(values.map(|(v, name)| (Value(v.0 + first_value), name.inlined())));
    }
}

impl Function {
    /// Takes the names of labels and locals from the module, so that texts show them.
    pub fn take_names(&mut self, module: &VerifiedModule) {
        let of_module = &module.module().names;
        for block in self.blocks() {
            if let Some(label) = self.label(block)
                && let Some(name) = of_module.label(self.func, label)
            {
                self.label_names.insert(label, name.to_owned());
            }
        }
        let local = |local: u32| shown_local_name(module, self.func, local);
        let mut names = Names::default();
        for (slot, data) in self.slots.iter().enumerate() {
            if let SlotOrigin::Local(number) = data.origin
                && let Some(name) = local(number)
            {
                names.slots.insert(Slot::new(slot), Name::of_local(name, number));
            }
        }
        if self.entry == Entry::Call {
            for (number, &param) in (0..).zip(self.params(Function::ENTRY)) {
                if let Some(name) = local(number) {
                    names.values.insert(param, Name::of_local(name, number));
                }
            }
        }
        self.names = Some(Box::new(names));
    }

    /// The name of a slot, if it has one.
    pub fn slot_name(&self, slot: Slot) -> Option<&str> {
        self.names.as_ref()?.slots.get(&slot).map(|name| &*name.text)
    }

    /// The name of a value, if it has one.
    pub fn value_name(&self, value: Value) -> Option<&str> {
        self.names.as_ref()?.values.get(&value).map(|name| &*name.text)
    }

    /// The local of the function that a slot stands for, if it has a name.
    pub fn named_local_of_slot(&self, slot: Slot) -> Option<u32> {
        self.names.as_ref()?.slots.get(&slot)?.local
    }

    /// The local of the function that a value has its name from, if it has one. The local holds the value from some place
    /// on where it is there, until it is written again.
    pub fn named_local_of_value(&self, value: Value) -> Option<u32> {
        self.names.as_ref()?.values.get(&value)?.local
    }

    /// The slots as texts write them: each key once, with the name after it.
    pub fn slot_texts(&self) -> Vec<String> {
        let slots = (0..self.slots.len()).map(Slot::new);
        let texts = self.slot_keys().into_iter().zip(slots).map(|(mut text, slot)| {
            write_suffix(&mut text, self.slot_name(slot));
            text
        });
        texts.collect()
    }

    /// The keys of the slots. What a key would be that is taken gets the type as a suffix: operands of two types can be
    /// at one depth. In functions that the verifier refuses, there is the number as well.
    pub fn slot_keys(&self) -> Vec<String> {
        let mut taken = HashSet::with_capacity(self.slots.len());
        let mut keys = Vec::with_capacity(self.slots.len());
        for (number, slot) in self.slots.iter().enumerate() {
            let mut key = match slot.origin {
                SlotOrigin::Local(local) => format!("s{local}"),
                SlotOrigin::Stack(depth) => format!("stack{depth}"),
                SlotOrigin::Inlined(number) => format!("inlined{number}"),
            };
            for suffix in [slot.ty.to_string(), number.to_string()] {
                if taken.contains(&key) {
                    key = format!("{key}_{suffix}");
                }
            }
            taken.insert(key.clone());
            keys.push(key);
        }
        keys
    }
}

/// The name of a local, if texts show it.
pub(crate) fn shown_local_name(module: &VerifiedModule, func: u32, local: u32) -> Option<&str> {
    let name = module.module().names.local(func, local)?;
    (!name.is_empty() && name.len() <= SHOWN_NAME_BYTES_MAX).then_some(name)
}

/// Appends a name to what it is the name of.
pub(crate) fn write_suffix(out: &mut String, name: Option<&str>) {
    if let Some(name) = name {
        out.push('.');
        literal::write_name(out, name);
    }
}

#[cfg(test)]
mod tests;
