//! Functions: locals, labelled blocks, and the jumps and calls between them.
//!
//! Jumps go to any block. The last block only returns, so that each of the others has a next one.

use slotvm_bytecode::inst::write_br_table;
use slotvm_bytecode::module::Label;
use slotvm_bytecode::{BranchHint, FuncType, Imm, Op, ValType};

use super::{Generator, MAIN, N_HOST_FUNCS};

const BLOCKS_MAX: usize = 10;
const BLOCKS_OF_LARGE: usize = 40;
const OPS_PER_BLOCK_MAX: usize = 8;
const OPS_OF_SMALL_MAX: usize = 4;
const LOCALS_MAX: usize = 7;
const LOCALS_OF_LARGE_MAX: usize = 140;

impl Generator<'_> {
    pub(super) fn func(&mut self, func: usize) {
        let ty = self.module.types[self.module.funcs[func].ty as usize].clone();
        self.func = func;
        self.make_locals(ty.params);
        let declared = self.locals[self.counter as usize..].chunk_by(|a, b| a == b);
        let declared = declared.map(|run| (run.len() as u32, run[0])).collect();
        // Functions that are worth inlining.
        let is_small = self.is_hot && func > 0 && self.choices.percent(45);
        let n_blocks = if is_small {
            1
        } else if self.choices.percent(5) {
            BLOCKS_OF_LARGE
        } else {
            1 + self.choices.below(5) + self.choices.below(BLOCKS_MAX)
        };
        let mut shapes: Vec<Vec<ValType>> = vec![Vec::new()];
        for _ in 1..n_blocks {
            let depth = if self.choices.percent(30) { self.choices.below(4) } else { 0 };
            shapes.push((0..depth).map(|_| self.any_type()).collect());
        }
        let shows_locals = !is_small && self.choices.percent(70);
        if !is_small {
            self.initialize_locals();
        }
        let mut labels = Vec::new();
        // A jump to the start may or may not restart the count.
        let may_spin = self.may_spin();
        if !may_spin && !is_small {
            self.start_counting();
        }
        for block in 0..n_blocks {
            let shape = self.shape_id(&shapes[block]);
            self.block_start = self.code.len() as u32;
            labels.push(Label { offset: self.block_start, shape });
            self.stack = shapes[block].clone();
            if block == 0 && may_spin {
                self.start_counting();
            }
            let n_ops_max = if is_small { OPS_OF_SMALL_MAX } else { OPS_PER_BLOCK_MAX };
            for _ in 0..self.choices.below(n_ops_max) {
                self.step();
            }
            if block + 1 < n_blocks {
                self.end_block(block, &shapes, &ty.results);
            } else {
                if shows_locals {
                    self.show_locals();
                }
                self.leave(&ty.results);
            }
        }
        let def = &mut self.module.funcs[func];
        def.locals = declared;
        def.labels = labels;
        def.code = std::mem::take(&mut self.code);
        def.hints = std::mem::take(&mut self.hints);
    }

    /// The parameters, the counter, and general locals.
    fn make_locals(&mut self, params: Vec<ValType>) {
        self.locals = params;
        self.counter = self.locals.len() as u32;
        self.locals.push(ValType::I32);
        let max = if self.choices.percent(6) { LOCALS_OF_LARGE_MAX } else { LOCALS_MAX };
        for _ in 0..1 + self.choices.below(max) {
            let ty = self.any_type();
            self.locals.push(ty);
        }
    }

    /// Whether a loop need not end.
    pub(super) fn may_spin(&mut self) -> bool {
        self.is_wild() && self.choices.percent(4)
    }

    fn start_counting(&mut self) {
        let rounds = self.choices.pick(match (self.is_hot, self.func) {
            (false, _) => &[6, 3, 12, 30],
            (true, 0) => &[300, 30, 3_000, 100_000],
            (true, _) => &[6, 3, 30, 300],
        });
        self.raw(Op::I32Const, Imm::i32(rounds));
        self.raw(Op::LocalSet, Imm::index(self.counter));
    }

    /// A block to jump to: backwards as often as forwards, and mostly not far.
    fn target(&mut self, block: usize, n_blocks: usize) -> usize {
        match self.choices.below(8) {
            0..=2 => self.choices.below(block + 1),
            3 => 0,
            4..=6 => (block + 1 + self.choices.below(3)).min(n_blocks - 1),
            _ => self.choices.below(n_blocks),
        }
    }

    /// Ends a block that is not the last one.
    fn end_block(&mut self, block: usize, shapes: &[Vec<ValType>], results: &[ValType]) {
        let n_blocks = shapes.len();
        // Conditional branches may follow each other, with blocks without labels between them.
        while self.choices.percent(60) {
            self.conditional(block, shapes);
            for _ in 0..self.choices.below(4) {
                self.step();
            }
        }
        // A jump into the middle right at the start makes loops with several entries.
        let is_dispatch = block == 0 && self.choices.percent(if self.is_hot { 20 } else { 80 });
        match if is_dispatch { 8 } else { self.choices.below(16) } {
            6 | 7 => {
                let target = self.target(block, n_blocks);
                if target <= block && !self.may_spin() {
                    self.skip_if_counted_down(block, shapes);
                }
                self.branch(target, &shapes[target]);
            }
            8..=10 => {
                if !self.may_spin() {
                    self.skip_if_counted_down(block, shapes);
                }
                self.br_table(shapes);
            }
            11 if self.choices.percent(70) => self.tail_call(block, shapes, results),
            12 if self.is_hot => self.tail_call(block, shapes, results),
            12 if self.choices.percent(30) => self.leave(results),
            13 if self.is_wild() => match self.choices.below(3) {
                0 => self.raw(Op::Unreachable, Imm::NONE),
                number => self.raw(Op::Trap, Imm::index(number as u32)),
            },
            14 | 15 => self.branch_or_fall(block, shapes),
            _ => self.fall(block, shapes),
        }
    }

    /// A branch, which may drop operands below those that it keeps.
    fn branch(&mut self, target: usize, shape: &[ValType]) {
        if !self.choices.percent(50) {
            self.morph(shape);
            return self.raw(Op::Br, Imm::index(target as u32));
        }
        let n_kept = self.choices.below(shape.len() + 1);
        let (lowest, kept) = shape.split_at(shape.len() - n_kept);
        if !self.stack.starts_with(lowest) {
            self.morph(lowest);
        }
        self.on_top_of(lowest.len(), kept);
        self.raw(Op::BrKeep, Imm::pair(target as u32, n_kept as u32));
    }

    /// Makes these the topmost operands, above the `n_lowest` lowest ones. The operands between stay, and may
    /// become more.
    fn on_top_of(&mut self, n_lowest: usize, operands: &[ValType]) {
        for _ in 0..self.choices.below(3) {
            let ty = self.any_type();
            self.value(ty);
        }
        if !self.stack[n_lowest..].ends_with(operands) || self.choices.percent(50) {
            for &ty in operands {
                self.value(ty);
            }
        }
    }

    fn fall(&mut self, block: usize, shapes: &[Vec<ValType>]) {
        let is_empty = self.code.len() as u32 == self.block_start;
        self.morph(&shapes[block + 1]);
        if is_empty {
            // Labels must be at different offsets.
            self.raw(Op::Nop, Imm::NONE);
        }
    }

    /// A conditional branch with two labelled targets.
    fn branch_or_fall(&mut self, block: usize, shapes: &[Vec<ValType>]) {
        let fits = |&target: &usize| shapes[target] == shapes[block + 1];
        let targets: Vec<usize> = (0..shapes.len()).filter(fits).collect();
        let target = self.choices.pick(&targets);
        self.morph(&shapes[target]);
        self.branch_if(block, target);
    }

    /// A conditional branch.
    fn conditional(&mut self, block: usize, shapes: &[Vec<ValType>]) {
        let target = self.target(block, shapes.len());
        if self.choices.percent(45) {
            self.skip_if_spent(block, shapes);
            let callee = MAIN + self.choices.below(self.n_funcs) as u32;
            return self.call(callee);
        }
        self.morph(&shapes[target]);
        self.branch_if(block, target);
    }

    fn branch_if(&mut self, block: usize, target: usize) {
        if target <= block && !self.may_spin() {
            self.count_down();
            self.raw(Op::I32Const, Imm::i32(0));
            self.raw(Op::I32GtS, Imm::NONE);
            if self.choices.percent(60) {
                // Not each time, so that later jumps are reached.
                self.raw(Op::LocalGet, Imm::index(self.counter));
                let bit = self.choices.below(3) as i32;
                self.raw(Op::I32Const, Imm::i32(bit));
                self.raw(Op::I32ShrU, Imm::NONE);
                self.raw(Op::I32And, Imm::NONE);
            }
        } else {
            self.condition();
        }
        self.raw_br_if(target);
    }

    /// Emits a `br_if`, with a hint or without one.
    fn raw_br_if(&mut self, target: usize) {
        if self.has_hints {
            let hint =
                self.choices.pick(&[None, Some(BranchHint::Unlikely), Some(BranchHint::Likely)]);
            let offset = self.code.len() as u32;
            self.hints.extend(hint.map(|hint| (offset, hint)));
        }
        self.raw(Op::BrIf, Imm::index(target as u32));
    }

    /// Pushes the counter, decremented; the stack that the generator knows stays.
    fn count_down(&mut self) {
        self.raw(Op::LocalGet, Imm::index(self.counter));
        self.raw(Op::I32Const, Imm::i32(1));
        self.raw(Op::I32Sub, Imm::NONE);
        self.raw(Op::LocalTee, Imm::index(self.counter));
    }

    /// Branches to the next block after too many backward jumps.
    fn skip_if_counted_down(&mut self, block: usize, shapes: &[Vec<ValType>]) {
        let next = block + 1;
        self.morph(&shapes[next]);
        self.count_down();
        self.raw(Op::I32Const, Imm::i32(0));
        self.raw(Op::I32LtS, Imm::NONE);
        self.raw_br_if(next);
    }

    /// Branches to the next block after too many calls that may recurse.
    fn skip_if_spent(&mut self, block: usize, shapes: &[Vec<ValType>]) {
        let next = block + 1;
        self.morph(&shapes[next]);
        self.raw(Op::GlobalGet, Imm::index(self.budget));
        self.raw(Op::I32Eqz, Imm::NONE);
        self.raw_br_if(next);
        self.raw(Op::GlobalGet, Imm::index(self.budget));
        self.raw(Op::I32Const, Imm::i32(1));
        self.raw(Op::I32Sub, Imm::NONE);
        self.raw(Op::GlobalSet, Imm::index(self.budget));
    }

    /// Pushes an operand of a conditional branch; the stack that the generator knows stays.
    fn condition(&mut self) {
        match self.choices.below(4) {
            0 => self.value(ValType::I32),
            1 => {
                // True now and then.
                let mask = self.choices.pick(&[1, 2, 3, 4]);
                self.apply(Op::LocalGet, Imm::index(self.counter), &[], &[ValType::I32]);
                self.raw(Op::I32Const, Imm::i32(mask));
                self.raw(Op::I32And, Imm::NONE);
            }
            _ => self.compare(),
        }
        self.stack.pop();
    }

    fn leave(&mut self, results: &[ValType]) {
        self.on_top(results);
        self.raw(Op::Return, Imm::NONE);
    }

    fn br_table(&mut self, shapes: &[Vec<ValType>]) {
        let default = self.choices.below(shapes.len());
        let same: Vec<u32> =
            (0..shapes.len()).filter(|&b| shapes[b] == shapes[default]).map(|b| b as u32).collect();
        let targets: Vec<u32> =
            (0..1 + self.choices.below(6)).map(|_| self.choices.pick(&same)).collect();
        self.morph(&shapes[default]);
        if self.choices.percent(70) {
            // Takes another target each time.
            self.raw(Op::LocalGet, Imm::index(self.counter));
            self.raw(Op::I32Const, Imm::i32(7));
            self.raw(Op::I32And, Imm::NONE);
        } else {
            self.value(ValType::I32);
        }
        write_br_table(&mut self.code, &targets, default as u32);
    }

    fn tail_call(&mut self, block: usize, shapes: &[Vec<ValType>], results: &[ValType]) {
        let fits = |f: &u32| self.callee_type(*f).results == results;
        let candidates: Vec<u32> = (0..N_HOST_FUNCS + self.n_funcs as u32).filter(fits).collect();
        if candidates.is_empty() {
            return self.leave(results);
        }
        let itself = MAIN + self.func as u32;
        let callee = match self.is_hot && self.choices.percent(40) && candidates.contains(&itself) {
            true => itself,
            false => self.choices.pick(&candidates),
        };
        if self.may_recurse(callee) && !self.is_wild() {
            self.skip_if_spent(block, shapes);
        }
        let params = self.callee_type(callee).params.clone();
        self.on_top(&params);
        if self.choices.percent(30) {
            self.index_of(callee);
            let ty = self.type_of(callee);
            self.raw(Op::ReturnCallIndirect, Imm::pair(ty, 0));
        } else {
            self.raw(Op::ReturnCall, Imm::index(callee));
        }
    }

    /// Makes these the topmost operands of a function that is about to be left, mostly the only ones.
    fn on_top(&mut self, operands: &[ValType]) {
        match self.choices.percent(25) {
            true => self.on_top_of(0, operands),
            false => self.morph(operands),
        }
    }

    /// Functions may call later ones without limit.
    pub(super) fn may_recurse(&self, callee: u32) -> bool {
        callee >= MAIN && callee <= MAIN + self.func as u32
    }

    /// A direct or indirect call.
    pub(super) fn call(&mut self, callee: u32) {
        let FuncType { params, results } = self.callee_type(callee).clone();
        if self.choices.percent(25) {
            let ty = self.type_of(callee);
            self.operands(&params);
            self.index_of(callee);
            self.raw(Op::CallIndirect, Imm::pair(ty, 0));
            self.stack.truncate(self.stack.len() - params.len());
            self.stack.extend_from_slice(&results);
        } else {
            self.apply(Op::Call, Imm::index(callee), &params, &results);
        }
    }

    /// Pushes the index of a table entry that is mostly a function; the stack that the generator knows
    /// stays.
    fn index_of(&mut self, callee: u32) {
        let entry = (0..super::TABLE_LEN - 2).find(|&entry| self.in_table(entry) == callee);
        match entry {
            Some(entry) if !self.is_wild() => self.raw(Op::I32Const, Imm::i32(entry as i32)),
            _ => {
                self.value(ValType::I32);
                self.stack.pop();
                self.raw(Op::I32Const, Imm::i32(7));
                self.raw(Op::I32And, Imm::NONE);
            }
        }
    }

    /// Makes the operand stack exactly this. Surplus operands mostly go to locals.
    pub(super) fn morph(&mut self, shape: &[ValType]) {
        let common = self.stack.iter().zip(shape).take_while(|(a, b)| a == b).count();
        while self.stack.len() > common {
            self.pop_to_local();
        }
        for &ty in &shape[common..] {
            self.value(ty);
        }
    }
}
