//! Code for objects: allocation, fields with their caches, elements, and calls.

use slotvm::builder::{GlobalId, LabelId, LocalId};
use slotvm::{ConstExpr, Op, ValType::I32, ValType::Ref};

use super::function::Code;
use crate::heap;
use crate::syntax::{Expr, ExprKind, Place, Variable};
use crate::value::{self, Value};

/// A new object has room for so many fields at least.
const FIELDS_MIN: usize = 4;
/// A new array that is not empty has room for these more elements than it has.
const SPARE: usize = 4;

impl<'p> Code<'_, '_, 'p> {
    /// Allocates words, and leaves their address in a local. This may collect, so nothing but values may be alive.
    pub(crate) fn allocate(&mut self, n_words: u32) -> LocalId {
        let (address, end) = (self.temporary(I32), self.temporary(I32));
        let fits = self.f.label();
        let bytes = 8 * n_words as i32;
        let (next, limit) = (self.unit.next, self.unit.limit);
        self.f.global_get(next).local_tee(address).i32_const(bytes).op(Op::I32Add).local_tee(end);
        self.f.global_get(limit).op(Op::I32LeU).br_if(fits);
        self.number(bytes as u32);
        self.host("collect");
        self.f.op(Op::Drop);
        self.f.global_get(next).local_tee(address).i32_const(bytes).op(Op::I32Add).local_set(end);
        self.f.bind(fits).local_get(end).global_set(next);
        address
    }

    /// Writes the first word of what is allocated: its kind or shape, and a number that depends on it.
    pub(crate) fn header(&mut self, address: LocalId, kind: u32, number: u32) {
        let word = u64::from(number) << 32 | u64::from(kind);
        self.f.local_get(address).i64_const(word as i64).store(Op::I64Store, 0);
    }

    /// Allocates a block.
    pub(crate) fn block(&mut self, n_items: u32) -> LocalId {
        let address = self.allocate(1 + n_items);
        self.header(address, heap::BLOCK, n_items);
        address
    }

    /// Stores the topmost values, the last one on top, one after the other.
    fn store_all(&mut self, n: usize, address: LocalId, offset: u32) {
        let value = self.temporary(Ref);
        for i in (0..n as u32).rev() {
            self.f.local_set(value).local_get(address);
            self.bits(value);
            self.f.store(Op::I64Store, offset + 8 * i);
        }
    }

    fn store_nil(&mut self, address: LocalId, offset: u32) {
        self.f.local_get(address).i64_const(Value::NIL.0 as i64).store(Op::I64Store, offset);
    }

    pub(crate) fn array(&mut self, place: Place, items: &'p [Expr]) {
        items.iter().for_each(|item| self.value(item));
        let room = if items.is_empty() { 0 } else { items.len() + SPARE };
        self.place(place);
        let address = self.allocate(3 + room as u32);
        self.header(address, heap::ARRAY, items.len() as u32);
        // Its block follows it.
        self.f.local_get(address).local_get(address).i32_const(16).op(Op::I32Add);
        self.tagged(value::FUNCTION);
        self.f.op(Op::I64ReinterpretRef).store(Op::I64Store, 8);
        let header = (room as u64) << 32 | u64::from(heap::BLOCK);
        self.f.local_get(address).i64_const(header as i64).store(Op::I64Store, 16);
        self.store_all(items.len(), address, 24);
        (items.len()..room).for_each(|i| self.store_nil(address, 24 + 8 * i as u32));
        self.f.local_get(address);
        self.tagged(value::ARRAY);
    }

    pub(crate) fn object(&mut self, place: Place, fields: &'p [(String, Expr)]) {
        fields.iter().for_each(|(_, value)| self.value(value));
        let room = fields.len().max(FIELDS_MIN);
        let shape =
            self.unit.heap.shape_of(fields.iter().map(|(name, _)| name.as_str()), room as u32);
        self.place(place);
        let address = self.allocate(2 + room as u32);
        self.header(address, shape, 1 + room as u32);
        self.store_nil(address, 8);
        self.store_all(fields.len(), address, 16);
        (fields.len()..room).for_each(|i| self.store_nil(address, 16 + 8 * i as u32));
        self.f.local_get(address);
        self.tagged(value::OBJECT);
    }

    /// Declares the cache of an access to a field, and returns the access's number.
    fn site(&mut self, name: &str) -> (u32, [GlobalId; 2]) {
        let cache = [(); 2].map(|()| self.f.module().global("", I32, true, ConstExpr::i32(0)));
        (self.unit.heap.add_site(name, cache[0].0), cache)
    }

    /// Goes to the label unless a value is an object of the shape in the cache. Leaves the place of the field less 16.
    fn cached(&mut self, object: LocalId, caches: [GlobalId; 2], miss: LabelId) {
        self.unless_tag(object, value::OBJECT, miss);
        self.address(object);
        self.f.load(Op::I32Load, 0).global_get(caches[0]).op(Op::I32Ne).br_if(miss);
        self.address(object);
        self.f.global_get(caches[1]).op(Op::I32Add);
    }

    pub(crate) fn get_field(&mut self, place: Place, object: &'p Expr, name: &str) {
        let (site, caches) = self.site(name);
        let (miss, end) = (self.f.label(), self.f.label());
        let object = self.in_local(object);
        self.cached(object, caches, miss);
        self.f.load(Op::I64Load, 16).op(Op::RefReinterpretI64).br(end).bind(miss);
        self.bits(object);
        self.number(site);
        self.place(place);
        self.host("get_field");
        self.f.op(Op::RefReinterpretI64).bind(end);
    }

    pub(crate) fn set_field(&mut self, object: &'p Expr, name: &str, value: &'p Expr) {
        let (site, caches) = self.site(name);
        let (miss, end) = (self.f.label(), self.f.label());
        let place = object.place;
        let object = self.in_local(object);
        let value = self.in_local(value);
        self.cached(object, caches, miss);
        self.bits(value);
        self.f.store(Op::I64Store, 16).br(end).bind(miss);
        self.bits(object);
        self.number(site);
        self.bits(value);
        self.place(place);
        self.host("set_field");
        self.f.op(Op::Drop);
        self.f.bind(end);
    }

    /// Goes to a label unless it is an array with this element. Leaves the address of its block and the index.
    fn element(
        &mut self,
        array: LocalId,
        index: LocalId,
        counter: Option<LocalId>,
        [other, miss]: [LabelId; 2],
    ) {
        self.unless_tag(array, value::ARRAY, other);
        let number = self.temporary(I32);
        match counter {
            Some(counter) => {
                self.f.local_get(counter);
            }
            None => {
                self.unless_tag(index, value::INTEGER, miss);
                self.address(index);
            }
        }
        self.f.local_tee(number);
        self.address(array);
        self.f.load(Op::I32Load, 4).op(Op::I32GeU).br_if(miss);
        self.address(array);
        self.f.load(Op::I32Load, 8).local_get(number);
    }

    pub(crate) fn get_index(&mut self, place: Place, container: &'p Expr, index: &'p Expr) {
        let (other, miss, end) = (self.f.label(), self.f.label(), self.f.label());
        let counter = self.counter(index);
        let container = self.in_local(container);
        let index = self.in_local(index);
        self.element(container, index, counter, [other, miss]);
        self.f.load_indexed(Op::I64LoadIndexed, 8, 8).op(Op::RefReinterpretI64).br(end).bind(other);
        self.unless_tag(container, value::MAP, miss);
        let map_get = self.unit.map_get;
        self.f.local_get(container).local_get(index).call(map_get).br(end).bind(miss);
        self.bits(container);
        self.bits(index);
        self.place(place);
        self.host("get_index");
        self.f.op(Op::RefReinterpretI64).bind(end);
    }

    pub(crate) fn set_index(&mut self, container: &'p Expr, index: &'p Expr, value: &'p Expr) {
        let (other, miss, end) = (self.f.label(), self.f.label(), self.f.label());
        let place = container.place;
        let counter = self.counter(index);
        let container = self.in_local(container);
        let index = self.in_local(index);
        let value = self.in_local(value);
        self.element(container, index, counter, [other, miss]);
        self.bits(value);
        self.f.store_indexed(Op::I64StoreIndexed, 8, 8).br(end).bind(other);
        self.unless_tag(container, value::MAP, miss);
        let map_set = self.unit.map_set;
        self.f.local_get(container).local_get(index).local_get(value);
        self.place(place);
        self.f.call(map_set).br(end).bind(miss);
        for local in [container, index, value] {
            self.bits(local);
        }
        self.host("set_index");
        self.f.op(Op::Drop);
        self.f.bind(end);
    }

    pub(crate) fn call(&mut self, place: Place, callee: &'p Expr, args: &'p [Expr]) {
        if let ExprKind::Variable(Variable::Global(name)) = &callee.kind
            && let Some(&(function, n_params)) = self.unit.direct.get(name)
            && n_params == args.len()
        {
            self.constant(Value::NIL);
            args.iter().for_each(|arg| self.value(arg));
            self.place(place);
            self.f.call(function);
            return;
        }
        self.value(callee);
        let closure = self.temporary(Ref);
        self.f.local_tee(closure);
        let is_function = self.f.label();
        self.bits(closure);
        self.f.i64_const(48).op(Op::I64ShrU).i64_const(value::FUNCTION as i64).op(Op::I64Eq);
        self.f.br_if(is_function);
        self.bits(closure);
        self.place(callee.place);
        self.host("no_function");
        self.f.unreachable().bind(is_function);
        args.iter().for_each(|arg| self.value(arg));
        self.address(closure);
        self.f.load(Op::I32Load, 8);
        let ty = self.f.module().func_type(&vec![Ref; args.len() + 1], &[Ref]);
        let table = self.unit.table;
        // Of another number of arguments, the function has another type, which traps.
        self.place(place);
        self.f.call_indirect(ty, table);
    }

    pub(crate) fn library(&mut self, expr: &'p Expr, name: &'static str, args: &'p [Expr]) {
        match name {
            "sqrt" => self.arithmetic(expr),
            "floor" => self.floor(expr.place, &args[0]),
            "len" => self.len(expr.place, &args[0]),
            "push" => self.push(expr.place, &args[0], &args[1]),
            _ => self.host_call(expr.place, name, args),
        }
    }

    fn len(&mut self, place: Place, of: &'p Expr) {
        let (other, end) = (self.f.label(), self.f.label());
        let value = self.in_local(of);
        self.unless_tag(value, value::ARRAY, other);
        self.address(value);
        self.f.load(Op::I32Load, 4);
        self.integer();
        self.f.br(end).bind(other);
        self.bits(value);
        self.place(place);
        self.host("len");
        self.f.op(Op::RefReinterpretI64).bind(end);
    }

    fn push(&mut self, place: Place, array: &'p Expr, value: &'p Expr) {
        let (full, end) = (self.f.label(), self.f.label());
        let array = self.in_local(array);
        let value = self.in_local(value);
        let (n, block) = (self.temporary(I32), self.temporary(I32));
        self.unless_tag(array, value::ARRAY, full);
        self.address(array);
        self.f.load(Op::I32Load, 8).local_set(block);
        self.address(array);
        self.f.load(Op::I32Load, 4).local_tee(n);
        self.f.local_get(block).load(Op::I32Load, 4).op(Op::I32GeU).br_if(full);
        self.f.local_get(block).local_get(n);
        self.bits(value);
        self.f.store_indexed(Op::I64StoreIndexed, 8, 8);
        self.address(array);
        self.f.local_get(n).i32_const(1).op(Op::I32Add).store(Op::I32Store, 4).br(end).bind(full);
        self.bits(array);
        self.bits(value);
        self.place(place);
        self.host("push");
        self.f.op(Op::Drop);
        self.f.bind(end);
        self.constant(Value::NIL);
    }
}
