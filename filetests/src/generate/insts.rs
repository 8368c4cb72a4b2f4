//! Random instructions other than control flow.

use slotvm_bytecode::inst::{write_inst, write_vector};
use slotvm_bytecode::{Effect, Imm, ImmKind, Op, ValType};

use super::{
    Generator, MAIN, N_HOST_FUNCS, TABLE_LEN, const_op, constant, rich_constant, vector_constant,
};

impl Generator<'_> {
    /// Appends an instruction. The caller tracks the stack.
    pub(super) fn raw(&mut self, op: Op, imm: Imm) {
        write_inst(&mut self.code, op, imm);
    }

    /// Appends a constant of a numeric type, an edge case or any if `is_rich`. The caller tracks the stack.
    pub(super) fn constant(&mut self, ty: ValType, is_rich: bool) {
        if ty == ValType::V128 {
            let vector = vector_constant(&mut self.choices);
            return write_vector(&mut self.code, Op::V128Const, vector);
        }
        let imm = match is_rich {
            true => rich_constant(&mut self.choices, ty),
            false => constant(&mut self.choices, ty),
        };
        self.raw(const_op(ty), imm);
    }

    /// Pushes some value of a type.
    pub(super) fn value(&mut self, ty: ValType) {
        let of_type = |local: &u32| self.locals[*local as usize] == ty;
        let locals: Vec<u32> = (0..self.locals.len() as u32).filter(of_type).collect();
        match self.choices.below(6) {
            0..=2 if !locals.is_empty() => {
                let local = self.choices.pick(&locals);
                self.raw(Op::LocalGet, Imm::index(local));
            }
            3 => {
                let global = self.global_of(ty, false);
                self.raw(Op::GlobalGet, Imm::index(global));
            }
            _ => match ty {
                ValType::FuncRef if self.choices.percent(50) => {
                    let func = MAIN + self.choices.below(self.n_funcs) as u32;
                    self.raw(Op::RefFunc, Imm::index(func));
                }
                ValType::Ref => self.new_ref(),
                _ if ty.is_ref() => self.raw(Op::RefNull, Imm::ref_type(ty)),
                _ => self.constant(ty, false),
            },
        }
        self.stack.push(ty);
    }

    /// A global of a type; there is a mutable one of each.
    fn global_of(&mut self, ty: ValType, mutable: bool) -> u32 {
        let fits = |&i: &u32| {
            let global = self.globals[i as usize];
            global.ty == ty && (global.mutable || !mutable)
        };
        let globals: Vec<u32> = (0..self.globals.len() as u32).filter(fits).collect();
        self.choices.pick(&globals)
    }

    /// The locals of a type that may be written, seldom including the counter.
    pub(super) fn writable_locals(&mut self, ty: ValType) -> Vec<u32> {
        let may_spin = ty == ValType::I32 && self.may_spin();
        let fits =
            |&local: &u32| self.locals[local as usize] == ty && (local != self.counter || may_spin);
        (0..self.locals.len() as u32).filter(fits).collect()
    }

    /// Puts these operands on the stack, reusing existing operands if they fit.
    pub(super) fn operands(&mut self, types: &[ValType]) {
        if self.stack.ends_with(types) && self.choices.percent(70) {
            return;
        }
        for &ty in types {
            self.value(ty);
        }
    }

    pub(super) fn apply(&mut self, op: Op, imm: Imm, params: &[ValType], results: &[ValType]) {
        self.operands(params);
        self.raw(op, imm);
        self.stack.truncate(self.stack.len() - params.len());
        self.stack.extend_from_slice(results);
    }

    pub(super) fn step(&mut self) {
        if self.refs && self.choices.percent(25) {
            return self.ref_step();
        }
        match self.choices.below(24) {
            0..=4 | 23 => self.numeric(),
            5..=8 => self.local(),
            9 | 10 => self.shuffle(),
            11 => self.load(),
            12 => self.store(),
            13 => self.global(),
            14 => self.any_call(),
            15 => self.local_address(),
            16 => self.bulk(),
            17 => self.table(),
            18 => self.select(),
            19..=21 => self.idiom(),
            _ => {
                let ty = self.any_type();
                self.value(ty);
            }
        }
    }

    /// A few numeric operations, each on the previous result if possible.
    fn numeric(&mut self) {
        let mut op = match self.vectors && self.choices.percent(60) {
            true => self.choices.pick(&self.on_vectors),
            false => self.choices.pick(&self.numeric),
        };
        let sig = op.signature().expect("numeric operations have signatures");
        if self.choices.percent(40)
            && let Some(&ty) = sig.params.first()
        {
            self.constant(ty, true);
            self.stack.push(ty);
        }
        for _ in 0..self.choices.below(4) {
            self.operation(op);
            let top = *self.stack.last().expect("operations have results");
            let takes_top = |op: &Op| op.signature().is_some_and(|sig| sig.params.contains(&top));
            let all = match top == ValType::V128 || self.vectors && self.choices.percent(20) {
                true => &self.on_vectors,
                false => &self.numeric,
            };
            let next: Vec<Op> = all.iter().copied().filter(takes_top).collect();
            op = self.choices.pick(&next);
        }
        self.operation(op);
        if self.choices.percent(50) {
            self.pop_to_local();
        }
    }

    fn operation(&mut self, op: Op) {
        let sig = op.signature().expect("numeric operations have signatures");
        let Some((&first, rest)) = sig.params.split_first() else {
            self.constant(ValType::V128, true);
            return self.stack.push(ValType::V128);
        };
        if self.stack.last() == Some(&first) {
            rest.iter().for_each(|&ty| self.value(ty));
        } else {
            self.operands(sig.params);
        }
        if op.effect() == Effect::Trap && !self.is_wild() {
            self.tame(sig.params);
        }
        match op.imm_kind() {
            ImmKind::Lanes => {
                let lanes = std::array::from_fn(|_| self.choices.below(32) as u8);
                write_vector(&mut self.code, op, u128::from_le_bytes(lanes));
            }
            ImmKind::Lane => {
                let lane = self.lane(op);
                self.raw(op, Imm::lane(lane));
            }
            _ => self.raw(op, Imm::NONE),
        }
        self.stack.truncate(self.stack.len() - sig.params.len());
        self.stack.extend_from_slice(sig.results);
    }

    /// A lane that an operation can name.
    fn lane(&mut self, op: Op) -> u32 {
        self.choices.below(op.n_lanes().expect("the operation names a lane") as usize) as u32
    }

    /// Makes the last operand of an operation that may trap harmless.
    fn tame(&mut self, params: &[ValType]) {
        match params {
            // Divisors are not zero. The quotient of the smallest number and -1 still traps.
            [ValType::I32, _] => {
                self.raw(Op::I32Const, Imm::i32(1));
                self.raw(Op::I32Or, Imm::NONE);
            }
            [ValType::I64, _] => {
                self.raw(Op::I64Const, Imm::i64(1));
                self.raw(Op::I64Or, Imm::NONE);
            }
            // Numbers to be converted are small.
            [ValType::F32] => {
                self.raw(Op::I32TruncSatF32S, Imm::NONE);
                self.raw(Op::I32Const, Imm::i32(0xffff));
                self.raw(Op::I32And, Imm::NONE);
                self.raw(Op::F32ConvertI32U, Imm::NONE);
            }
            _ => {
                self.raw(Op::I64TruncSatF64S, Imm::NONE);
                self.raw(Op::I64Const, Imm::i64(0xffff));
                self.raw(Op::I64And, Imm::NONE);
                self.raw(Op::F64ConvertI64U, Imm::NONE);
            }
        }
    }

    /// Pops the top of the stack, mostly to a local.
    pub(super) fn pop_to_local(&mut self) {
        let ty = self.stack.pop().expect("the stack is not empty");
        let locals = self.writable_locals(ty);
        if locals.is_empty() || self.choices.percent(25) {
            self.raw(Op::Drop, Imm::NONE);
        } else {
            let local = self.choices.pick(&locals);
            self.raw(Op::LocalSet, Imm::index(local));
        }
    }

    fn local(&mut self) {
        let local = self.choices.below(self.locals.len()) as u32;
        let ty = self.locals[local as usize];
        let imm = Imm::index(local);
        let may_write = local != self.counter || self.may_spin();
        match self.choices.below(3) {
            1 if may_write => self.apply(Op::LocalSet, imm, &[ty], &[]),
            2 if may_write => self.apply(Op::LocalTee, imm, &[ty], &[ty]),
            _ => self.apply(Op::LocalGet, imm, &[], &[ty]),
        }
    }

    fn global(&mut self) {
        let ty = self.any_type();
        if self.choices.percent(50) {
            let global = self.global_of(ty, true);
            self.apply(Op::GlobalSet, Imm::index(global), &[ty], &[]);
        } else {
            let global = self.global_of(ty, false);
            self.apply(Op::GlobalGet, Imm::index(global), &[], &[ty]);
        }
    }

    fn any_call(&mut self) {
        let callee = self.choices.below(N_HOST_FUNCS as usize + self.n_funcs) as u32;
        if !self.may_recurse(callee) || self.is_wild() {
            self.call(callee);
        }
    }

    fn shuffle(&mut self) {
        let n = self.stack.len();
        let (op, needed) = self.choices.pick(&[
            (Op::Drop, 1),
            (Op::Dup, 1),
            (Op::Swap, 2),
            (Op::Over, 2),
            (Op::Rot, 3),
            (Op::Nop, 0),
        ]);
        if n < needed {
            return;
        }
        self.raw(op, Imm::NONE);
        match op {
            Op::Drop => drop(self.stack.pop()),
            Op::Dup => self.stack.push(self.stack[n - 1]),
            Op::Swap => self.stack.swap(n - 1, n - 2),
            Op::Over => self.stack.push(self.stack[n - 2]),
            Op::Rot => self.stack[n - 3..].rotate_left(1),
            _ => {}
        }
    }

    fn select(&mut self) {
        let ty = self.any_type();
        self.apply(Op::Select, Imm::NONE, &[ty, ty, ValType::I32], &[ty]);
    }

    // --- Memory --------------------------------------------------------------------------------

    /// An address, mostly inside the first page.
    pub(super) fn address(&mut self) {
        self.value(ValType::I32);
        if !self.is_wild() || self.choices.percent(50) {
            // The data segment, or the area that programs mostly write to.
            let mask = self.choices.pick(&[0x3fff, 0x3ff, 0x27ff]);
            self.raw(Op::I32Const, Imm::i32(mask));
            self.raw(Op::I32And, Imm::NONE);
        }
    }

    pub(super) fn offset(&mut self) -> u32 {
        if self.is_wild() && self.choices.percent(50) {
            return self.choices.pick(&[
                60000,
                0xffff,
                0x10000,
                0x7fff_ffff,
                0xffff_fff8,
                0xffff_ffff,
                0x200_0000,
            ]);
        }
        self.choices.pick(&[0, 0, 0, 1, 4, 8, 16, 100, 1000, 4096, 40000])
    }

    fn access_imm(&mut self, op: Op) -> Imm {
        let offset = self.offset();
        match op.imm_kind() {
            ImmKind::Indexed => Imm::indexed(offset, self.choices.below(4) as u32),
            ImmKind::MemLane => Imm::mem_lane(offset, self.lane(op)),
            _ => Imm::mem(offset),
        }
    }

    fn access_address(&mut self, op: Op) {
        self.address();
        if op.imm_kind() == ImmKind::Indexed {
            self.value(ValType::I32);
            if !self.is_wild() {
                self.raw(Op::I32Const, Imm::i32(0xff));
                self.raw(Op::I32And, Imm::NONE);
            }
            self.stack.pop();
        }
        self.stack.pop();
    }

    fn load(&mut self) {
        let op = self.loads[self.choices.below(self.loads.len())];
        let imm = self.access_imm(op);
        self.access_address(op);
        if op.imm_kind() == ImmKind::MemLane {
            self.value(ValType::V128);
            self.stack.pop();
        }
        self.raw(op, imm);
        self.stack.extend_from_slice(op.signature().expect("a load").results);
    }

    fn store(&mut self) {
        let op = self.stores[self.choices.below(self.stores.len())];
        let imm = self.access_imm(op);
        self.access_address(op);
        let params = op.signature().expect("a store").params;
        self.value(*params.last().expect("a value"));
        self.stack.pop();
        self.raw(op, imm);
    }

    /// Accesses of a numeric local through its address: mostly its own type, sometimes not.
    fn local_address(&mut self) {
        if self.module.frame_stack.is_none() {
            return;
        }
        let may_spin = self.may_spin();
        let fits = |&local: &u32| {
            let ty = self.locals[local as usize];
            ty.is_num() && ty != ValType::V128 && (local != self.counter || may_spin)
        };
        let locals: Vec<u32> = (0..self.locals.len() as u32).filter(fits).collect();
        if locals.is_empty() {
            return;
        }
        let local = self.choices.pick(&locals);
        let ty = self.locals[local as usize];
        self.raw(Op::LocalAddr, Imm::index(local));
        let (load, store) = match ty {
            ValType::I32 => (Op::I32Load, Op::I32Store),
            ValType::I64 => (Op::I64Load, Op::I64Store),
            ValType::F32 => (Op::F32Load, Op::F32Store),
            _ => (Op::F64Load, Op::F64Store),
        };
        match self.choices.below(6) {
            0 | 1 => {
                self.raw(load, Imm::mem(0));
                self.stack.push(ty);
            }
            2 => {
                // The address moves below the value and back.
                self.stack.push(ValType::I32);
                self.value(ty);
                self.stack.truncate(self.stack.len() - 2);
                self.raw(store, Imm::mem(0));
            }
            3 => {
                self.raw(Op::Dup, Imm::NONE);
                self.raw(load, Imm::mem(0));
                self.raw(store, Imm::mem(0));
            }
            4 => {
                self.raw(Op::I32Load8S, Imm::mem(0));
                self.stack.push(ValType::I32);
            }
            // The address itself stays on the stack.
            _ => self.stack.push(ValType::I32),
        }
    }

    /// A length or an address: small, or arbitrary.
    pub(super) fn const_below(&mut self, max: usize) {
        let value = if self.is_wild() {
            self.choices.pick(&[-1, 0x1_0000, 0x7fff_ffff])
        } else {
            self.choices.below(max) as i32
        };
        self.raw(Op::I32Const, Imm::i32(value));
    }

    fn bulk(&mut self) {
        let op = self.choices.pick(&[
            Op::MemorySize,
            Op::MemoryFill,
            Op::MemoryCopy,
            Op::MemoryInit,
            Op::DataDrop,
            Op::MemoryGrow,
        ]);
        match op {
            Op::MemorySize => self.apply(op, Imm::NONE, &[], &[ValType::I32]),
            Op::MemoryGrow => {
                self.const_below(3);
                self.raw(op, Imm::NONE);
                self.stack.push(ValType::I32);
            }
            Op::DataDrop if !self.is_wild() => {}
            Op::DataDrop => self.raw(op, Imm::index(1)),
            _ => {
                self.address();
                self.stack.pop();
                let max = match op {
                    Op::MemoryFill => [256, 300],
                    Op::MemoryCopy => [2000, 500],
                    _ => [32, 32],
                };
                max.into_iter().for_each(|max| self.const_below(max));
                let imm = if op == Op::MemoryInit { Imm::pair(1, 0) } else { Imm::NONE };
                self.raw(op, imm);
            }
        }
    }

    fn table(&mut self) {
        use ValType::{FuncRef, I32};
        let len = TABLE_LEN as usize;
        match self.choices.below(9) {
            0 => self.apply(Op::TableSize, Imm::NONE, &[], &[I32]),
            1 => {
                self.const_below(len);
                self.raw(Op::TableGet, Imm::NONE);
                self.stack.push(FuncRef);
            }
            2 => {
                // The first entries are mostly kept, so that they can be called.
                let entry = if self.is_wild() { 0 } else { 6 + self.choices.below(2) as i32 };
                self.raw(Op::I32Const, Imm::i32(entry));
                self.value(FuncRef);
                self.stack.pop();
                self.raw(Op::TableSet, Imm::NONE);
            }
            3 => {
                self.value(FuncRef);
                self.stack.pop();
                self.const_below(3);
                self.raw(Op::TableGrow, Imm::NONE);
                self.stack.push(I32);
            }
            4 => {
                let from = if self.is_wild() { 0 } else { 6 };
                self.raw(Op::I32Const, Imm::i32(from));
                self.value(FuncRef);
                self.stack.pop();
                self.const_below(3);
                self.raw(Op::TableFill, Imm::NONE);
            }
            5 => {
                self.raw(Op::I32Const, Imm::i32(6));
                self.const_below(5);
                self.const_below(3);
                self.raw(Op::TableCopy, Imm::pair(0, 0));
            }
            6 => {
                self.raw(Op::I32Const, Imm::i32(5));
                self.const_below(2);
                self.const_below(2);
                self.raw(Op::TableInit, Imm::pair(1, 0));
            }
            7 if self.is_wild() => self.raw(Op::ElemDrop, Imm::index(1)),
            _ => self.apply(Op::RefIsNull, Imm::NONE, &[FuncRef], &[I32]),
        }
    }
}
