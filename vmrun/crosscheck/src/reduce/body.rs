//! The code of a function as a list that can be edited, and the way back into a module.

use slotvm_bytecode::builder::{FuncId, FunctionBuilder, LabelId, ModuleBuilder};
use slotvm_bytecode::inst::{self, CodeReader};
use slotvm_bytecode::{BranchHint, Effect, Imm, ImmKind, Op, ValType, VerifiedModule, verify};

/// A function that is being edited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Body {
    /// Its number.
    pub(super) func: u32,
    /// The number of its parameters, which are the first locals.
    pub(super) n_params: usize,
    /// The locals that are not parameters.
    pub(super) locals: Vec<ValType>,
    /// The operand stack at each label, deepest operand first.
    pub(super) stacks: Vec<Vec<ValType>>,
    /// Labels and instructions.
    pub(super) items: Vec<Item>,
}

/// A part of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// A label, by its number.
    Label(u32),
    /// An instruction.
    Inst(Inst),
}

/// An instruction whose immediates do not depend on its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Inst {
    pub(super) op: Op,
    pub(super) imm: Imm,
    /// The targets of a branch, the default last.
    pub(super) labels: Vec<u32>,
    /// The hint of a `br_if`.
    pub(super) hint: Option<BranchHint>,
    /// The 16 bytes of a vector.
    pub(super) vector: u128,
}

/// The types that an instruction takes off the operand stack and leaves there, deepest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Operands {
    pub(super) pops: Vec<ValType>,
    pub(super) pushes: Vec<ValType>,
}

impl Inst {
    /// An instruction with a simple immediate.
    pub(super) fn new(op: Op, imm: Imm) -> Inst {
        Inst { op, imm, labels: Vec::new(), hint: None, vector: 0 }
    }

    /// A branch to a label.
    pub(super) fn br(label: u32) -> Inst {
        Inst { labels: vec![label], ..Inst::new(Op::Br, Imm::NONE) }
    }

    /// The constant 0 or null, or another small integer.
    pub(super) fn constant(ty: ValType, value: i32) -> Inst {
        match ty {
            ValType::I32 => Inst::new(Op::I32Const, Imm::i32(value)),
            ValType::I64 => Inst::new(Op::I64Const, Imm::i64(value.into())),
            ValType::F32 => Inst::new(Op::F32Const, Imm::index((value as f32).to_bits())),
            ValType::F64 => Inst::new(Op::F64Const, Imm(f64::from(value).to_bits())),
            ValType::V128 => Inst::new(Op::V128Const, Imm::NONE),
            ValType::FuncRef | ValType::ExternRef | ValType::Ref => {
                Inst::new(Op::RefNull, Imm::ref_type(ty))
            }
        }
    }

    /// Whether it is a constant.
    pub(super) fn is_constant(&self) -> bool {
        use Op::*;
        matches!(self.op, I32Const | I64Const | F32Const | F64Const | V128Const | RefNull)
    }

    /// Whether control does not go on after it.
    pub(super) fn ends_block(&self) -> bool {
        self.op.effect() == Effect::Control && self.op != Op::BrIf
    }

    /// The operands that it takes, if it does nothing but compute one value from them.
    pub(super) fn n_pure_operands(&self) -> Option<usize> {
        match self.op {
            Op::LocalGet | Op::LocalAddr | Op::GlobalGet | Op::RefFunc | Op::RefNull => Some(0),
            Op::RefIsNull => Some(1),
            Op::Select => Some(3),
            op if op.effect() == Effect::Pure => {
                op.signature().filter(|s| s.results.len() == 1).map(|s| s.params.len())
            }
            _ => None,
        }
    }
}

impl Body {
    /// The code of a function that a module defines.
    pub(super) fn of(module: &VerifiedModule, func: u32) -> Body {
        let code = module.func(func).expect("the module defines it");
        let stack = |shape| {
            let mut types = Vec::new();
            let mut rest = shape;
            while let Some((below, ty)) = module.shape_top(rest) {
                types.push(ty);
                rest = below;
            }
            types.reverse();
            types
        };
        let mut labels = (0..).zip(&code.labels).peekable();
        let mut items = Vec::new();
        let mut reader = CodeReader::new(&code.code, 0);
        while !reader.is_at_end() {
            let offset = reader.offset();
            while let Some((label, _)) = labels.next_if(|(_, label)| label.offset == offset) {
                items.push(Item::Label(label));
            }
            let read = reader.read().expect("the verifier has read it");
            let hint = code.hint_at(offset);
            items.push(Item::Inst(Inst { hint, ..instruction(&code.code, read) }));
        }
        let locals = &module.body(func).expect("the module defines it").locals;
        let n_params = module.func_type(func).params.len();
        Body {
            func,
            n_params,
            locals: locals[n_params..].iter().map(|local| local.ty).collect(),
            stacks: code.labels.iter().map(|label| stack(label.shape)).collect(),
            items,
        }
    }

    /// A body that only returns zeros.
    pub(super) fn stub(module: &VerifiedModule, func: u32) -> Body {
        let ty = module.func_type(func);
        let zeros = ty.results.iter().map(|&ty| Inst::constant(ty, 0));
        let insts = zeros.chain([Inst::new(Op::Return, Imm::NONE)]);
        Body {
            func,
            n_params: ty.params.len(),
            locals: Vec::new(),
            stacks: Vec::new(),
            items: insts.map(Item::Inst).collect(),
        }
    }

    /// A body that calls a function with zeros, and returns its results, or else zeros.
    pub(super) fn caller(module: &VerifiedModule, func: u32, callee: u32) -> Body {
        let mut body = Body::stub(module, func);
        let (own, ty) = (module.func_type(func), module.func_type(callee));
        let mut insts: Vec<Inst> = ty.params.iter().map(|&ty| Inst::constant(ty, 0)).collect();
        insts.push(Inst::new(Op::Call, Imm::index(callee)));
        let mut call: Vec<Item> = insts.into_iter().map(Item::Inst).collect();
        if ty.results == own.results {
            body.items.drain(..own.results.len());
        }
        call.append(&mut body.items);
        Body { items: call, ..body }
    }

    /// Whether control reaches each item.
    pub(super) fn reachable(&self) -> Vec<bool> {
        let mut places = vec![usize::MAX; self.stacks.len()];
        for (i, item) in self.items.iter().enumerate() {
            if let Item::Label(label) = item {
                places[*label as usize] = i;
            }
        }
        let mut is_reached = vec![false; self.items.len()];
        let mut work = vec![0];
        while let Some(mut i) = work.pop() {
            while let Some(item) = self.items.get(i).filter(|_| !is_reached[i]) {
                is_reached[i] = true;
                if let Item::Inst(inst) = item {
                    work.extend(inst.labels.iter().map(|&label| places[label as usize]));
                    if inst.ends_block() {
                        break;
                    }
                }
                i += 1;
            }
        }
        is_reached
    }

    /// The labels that branches which control reaches go to.
    pub(super) fn targets(&self, reachable: &[bool]) -> Vec<bool> {
        let mut is_target = vec![false; self.stacks.len()];
        for (item, _) in self.items.iter().zip(reachable).filter(|(_, reached)| **reached) {
            if let Item::Inst(inst) = item {
                inst.labels.iter().for_each(|&label| is_target[label as usize] = true);
            }
        }
        is_target
    }

    /// The module with this code for the function, if that is valid.
    pub(super) fn in_module(&self, module: &VerifiedModule) -> Option<VerifiedModule> {
        in_module(module, &[self])
    }

    /// The operands of each instruction; none for those that end a block, and for labels.
    pub(super) fn operands(&self, module: &VerifiedModule) -> Vec<Operands> {
        let mut builder = ModuleBuilder::of(module);
        let mut operands = vec![Operands::default(); self.items.len()];
        let mut f = builder.redefine(FuncId(self.func));
        let mut pending: Option<(usize, usize)> = None;
        self.emit(&mut f, |f, i| {
            if let Some((i, n_pushes)) = pending.take() {
                operands[i].pushes = topmost(f, n_pushes);
            }
            let Some(Item::Inst(inst)) = self.items.get(i) else { return };
            if let Some((n_pops, n_pushes)) = arity(module, inst) {
                operands[i].pops = topmost(f, n_pops);
                pending = Some((i, n_pushes));
            }
        });
        operands
    }

    /// Emits the reachable code. `see` is called before each item, and at the end.
    fn emit(&self, f: &mut FunctionBuilder<'_>, mut see: impl FnMut(&FunctionBuilder<'_>, usize)) {
        let reachable = self.reachable();
        let is_target = self.targets(&reachable);
        let labels: Vec<LabelId> =
            self.stacks.iter().map(|stack| f.label_with_stack(stack)).collect();
        let locals = self.define_used_locals(f);
        for (i, item) in self.items.iter().enumerate().filter(|&(i, _)| reachable[i]) {
            see(f, i);
            match item {
                Item::Label(label) if is_target[*label as usize] => {
                    f.bind(labels[*label as usize]);
                }
                Item::Label(_) => {}
                Item::Inst(inst) => emit_inst(f, inst, &labels, &locals),
            }
        }
        see(f, self.items.len());
    }

    /// Defines the locals that are used, and returns the new number of each local.
    fn define_used_locals(&self, f: &mut FunctionBuilder<'_>) -> Vec<u32> {
        let mut is_used = vec![false; self.n_params + self.locals.len()];
        for item in &self.items {
            if let Item::Inst(inst) = item
                && inst.op.imm_kind() == ImmKind::Local
            {
                is_used[inst.imm.low() as usize] = true;
            }
        }
        let params = 0..self.n_params as u32;
        let own = (self.n_params..).zip(&self.locals);
        params.chain(own.map(|(i, &ty)| if is_used[i] { f.local(ty).0 } else { 0 })).collect()
    }
}

/// The module with these bodies, if that is valid.
pub(super) fn in_module(module: &VerifiedModule, bodies: &[&Body]) -> Option<VerifiedModule> {
    let mut builder = ModuleBuilder::of(module);
    for body in bodies {
        let mut f = builder.redefine(FuncId(body.func));
        body.emit(&mut f, |_, _| {});
        f.finish().ok()?;
    }
    verify(builder.finish().ok()?).ok()
}

fn instruction(code: &[u8], read: slotvm_bytecode::Inst) -> Inst {
    let mut own = Inst::new(read.op, read.imm);
    match read.op.imm_kind() {
        ImmKind::Label => own.labels = vec![read.imm.low()],
        ImmKind::LabelCount => {
            own.labels = vec![read.imm.low()];
            own.imm = Imm::index(read.imm.high());
        }
        ImmKind::Labels => own.labels = inst::labels(code, read.imm).collect(),
        ImmKind::V128 | ImmKind::Lanes => own.vector = inst::vector(code, read.imm),
        _ => {}
    }
    own
}

fn emit_inst(f: &mut FunctionBuilder<'_>, inst: &Inst, labels: &[LabelId], locals: &[u32]) {
    let label = |i: usize| labels[inst.labels[i] as usize];
    match inst.op.imm_kind() {
        ImmKind::Label if inst.op == Op::BrIf => _ = f.br_if_hinted(label(0), inst.hint),
        ImmKind::Label => _ = f.br(label(0)),
        ImmKind::LabelCount => _ = f.br_keep(label(0), inst.imm.low()),
        ImmKind::Labels => {
            let all: Vec<LabelId> = (0..inst.labels.len()).map(label).collect();
            let (default, cases) = all.split_last().expect("there is a default");
            f.br_table(cases, *default);
        }
        ImmKind::V128 | ImmKind::Lanes => _ = f.vector(inst.op, inst.vector),
        ImmKind::Local => _ = f.inst(inst.op, Imm::index(locals[inst.imm.low() as usize])),
        _ => _ = f.inst(inst.op, inst.imm),
    }
}

/// The topmost operands, deepest first.
fn topmost(f: &FunctionBuilder<'_>, n: usize) -> Vec<ValType> {
    let mut types: Vec<ValType> = f.operands().take(n).collect();
    types.reverse();
    types
}

/// The number of operands that an instruction takes and leaves, unless it ends a block.
fn arity(module: &VerifiedModule, inst: &Inst) -> Option<(usize, usize)> {
    if let Some(signature) = inst.op.signature() {
        return Some((signature.params.len(), signature.results.len()));
    }
    let of_type = |ty: &slotvm_bytecode::FuncType| (ty.params.len(), ty.results.len());
    Some(match inst.op {
        Op::Drop | Op::LocalSet | Op::GlobalSet | Op::BrIf => (1, 0),
        Op::Dup => (1, 2),
        Op::Swap => (2, 2),
        Op::Over => (2, 3),
        Op::Rot => (3, 3),
        Op::Select => (3, 1),
        Op::LocalGet | Op::LocalAddr | Op::GlobalGet | Op::RefNull => (0, 1),
        Op::LocalTee | Op::RefIsNull | Op::TableGet => (1, 1),
        Op::TableSet => (2, 0),
        Op::TableGrow => (2, 1),
        Op::TableFill => (3, 0),
        Op::Call => of_type(module.func_type(inst.imm.low())),
        Op::CallIndirect => {
            let (n_params, n_results) = of_type(&module.module().types[inst.imm.low() as usize]);
            (n_params + 1, n_results)
        }
        _ => return None,
    })
}
