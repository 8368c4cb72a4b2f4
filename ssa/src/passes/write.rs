//! Encoding of slot form as bytecode.
//!
//! Relies on slot form as [`crate::passes::destruct`] leaves it, built without charges
//! ([`crate::construction::build::BuildOptions`]), of a function of the module that the code is written into.
//! Guarantees code that does the same as the function: effects and traps in the same order, results, memory. What may
//! differ are code offsets, fuel and the cells of a frame.
//!
//! * Inside a block values stay on the operand stack where their order allows it (`schedule`). Between
//!   blocks the operand stack is empty.
//! * Slots and temporary values become locals. Locals that live in the frame in linear memory stay, in
//!   their order, and with the same frame: `local.addr` makes its address anew wherever it is used, and
//!   accesses of such locals through it become `local.get` and `local.set`. A local whose address is not
//!   used as a number any more would leave the frame; code at the end that nothing reaches uses it.
//! * Blocks are in the order of the bytecode that they were made from (`layout`), so that loops and
//!   branches are as they were; the graph may be irreducible. Labels that are branched to and labels with
//!   names stand in the code, with their names.
//! * Each instruction belongs to the source line that it came from.

mod layout;
mod schedule;

use slotvm_bytecode::builder::{
    BuildError, FuncId, FunctionBuilder, LabelId, LocalId, ModuleBuilder,
};
use slotvm_bytecode::verified::Storage;
use slotvm_bytecode::{ImmKind, Op, ValType, VerifiedModule, limits};

use self::layout::{Layout, Leave};
use self::schedule::{Item, Scheduler};
use crate::ir::entity::{Block, Inst};
use crate::ir::irop::Opcode;
use crate::ir::{Function, SlotOrigin};

/// A limit of modules that the code of a function exceeds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its code would exceed the limit {0}")]
pub struct ExceedsLimit(pub &'static str);

/// Error of a function that cannot be written as bytecode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The function keeps the code that it has.
    #[error(transparent)]
    Limit(#[from] ExceedsLimit),
    /// The code would be invalid, which is a fault of this module.
    #[error(transparent)]
    Invalid(#[from] BuildError),
}

/// Replaces the code of a function of `module`, which `builder` started with, by that of its slot form.
/// `locals` has for each slot the local that it is named after.
///
/// # Errors
/// Fails if the code would exceed a limit, or if it would be invalid.
///
/// # Panics
/// Panics if the function is not as the [module's documentation](self) says.
pub fn write(
    f: &Function,
    locals: &[Option<u32>],
    module: &VerifiedModule,
    builder: &mut ModuleBuilder,
) -> Result<(), WriteError> {
    let body = module.body(f.func).expect("the function is defined in the module");
    let layout = Layout::of(f);
    let mut scheduler = Scheduler::new(f, body, f.ty.params.len());
    let mut items = Vec::new();
    let mut ends = Vec::with_capacity(layout.blocks.len());
    for &block in &layout.blocks {
        scheduler.block(block, &mut items);
        ends.push(items.len());
    }
    let mut writer = Writer {
        f,
        module,
        code: builder.redefine(FuncId(f.func)),
        variables: Vec::new(),
        framed: Vec::new(),
        labels: vec![None; f.n_blocks()],
        depth_max: 0,
    };
    writer.declare_locals(locals, &scheduler.variables, &items);
    // What entering the function does belongs to its start.
    writer.set_line(f.insts(Function::ENTRY)[0]);
    let mut start = 0;
    for (i, (&block, &end)) in layout.blocks.iter().zip(&ends).enumerate() {
        let next = layout.blocks.get(i + 1).copied();
        writer.block(block, next, &items[start..end], &layout);
        start = end;
    }
    writer.keep_frame(&scheduler.escapes);
    writer.finish()
}

/// Writes the code.
struct Writer<'f, 'm> {
    f: &'f Function,
    module: &'f VerifiedModule,
    code: FunctionBuilder<'m>,
    /// The local of each variable.
    variables: Vec<LocalId>,
    /// The locals that live in the frame.
    framed: Vec<LocalId>,
    labels: Vec<Option<LabelId>>,
    depth_max: u32,
}

impl<'f> Writer<'f, '_> {
    /// Declares the locals: first those that live in the frame, then the variables that the code uses, by
    /// type.
    fn declare_locals(&mut self, sources: &[Option<u32>], types: &[ValType], items: &[Item]) {
        let body = self.module.body(self.f.func).expect("the function is defined in the module");
        let n_params = self.f.ty.params.len();
        for (local, i) in body.locals.iter().zip(0..) {
            if local.storage != Storage::Promotable {
                let is_param = (i as usize) < n_params;
                let new = if is_param { LocalId(i) } else { self.code.local(local.ty) };
                self.framed.push(new);
                self.name(new, Some(i));
            }
        }
        let mut is_used = vec![false; types.len()];
        for item in items {
            if let &(Item::Get(variable) | Item::Set(variable) | Item::Tee(variable)) = item {
                is_used[variable as usize] = true;
            }
        }
        self.variables = vec![LocalId(0); types.len()];
        for ty in ValType::ALL {
            for variable in (0..types.len()).filter(|&v| types[v] == ty && is_used[v]) {
                let param = self.f.slots.get(variable).and_then(|slot| match slot.origin {
                    SlotOrigin::Local(local) if (local as usize) < n_params => Some(local),
                    _ => None,
                });
                let local = param.map_or_else(|| self.code.local(ty), LocalId);
                self.variables[variable] = local;
                if param.is_none() {
                    self.name(local, sources.get(variable).copied().flatten());
                }
            }
        }
        (0..n_params as u32).for_each(|param| self.name(LocalId(param), Some(param)));
    }

    /// Names a local after one of the old code.
    fn name(&mut self, local: LocalId, source: Option<u32>) {
        let names = &self.module.module().names;
        if let Some(name) = source.and_then(|source| names.local(self.f.func, source)) {
            self.code.name_local(local, name);
        }
    }

    fn block(&mut self, block: Block, next: Option<Block>, items: &[Item], layout: &Layout) {
        if self.name_of(block).is_some() || layout.is_branched_to(block) {
            let label = self.label(block);
            self.code.bind_with_stack(label, &[]);
        }
        let Some((&last, items)) = items.split_last() else {
            unreachable!("the terminator of a block has code")
        };
        let Item::Inst(terminator) = last else { unreachable!("it is an instruction") };
        let leave = layout.leave(self.f, block, next);
        let n_before = items.len() - usize::from(leave.is_inverted());
        for &item in &items[..n_before] {
            self.item(item);
        }
        self.set_line(terminator);
        match leave {
            Leave::Inst => self.plain(terminator),
            Leave::FallThrough => {}
            Leave::Br(to) => {
                let label = self.label(to);
                self.code.br(label);
            }
            Leave::BrIf { to, other, .. } => {
                if leave.is_inverted() {
                    self.inverted(items[n_before]);
                }
                let label = self.label(to);
                let hint = self.f.branch_hint(terminator);
                let inverts = leave.is_inverted();
                let hint = hint.map(|hint| if inverts { hint.inverted() } else { hint });
                self.code.br_if_hinted(label, hint);
                if let Some(other) = other {
                    let label = self.label(other);
                    self.code.br(label);
                }
            }
            Leave::BrTable => {
                let targets = self.f.succ_edges(block).map(|edge| self.f.edge_dst(edge));
                let targets: Vec<Block> = targets.collect();
                let mut labels: Vec<LabelId> = targets.iter().map(|&to| self.label(to)).collect();
                let default = labels.pop().expect("there is a default");
                self.code.br_table(&labels, default);
            }
        }
    }

    /// Inverts the condition that an item returns.
    fn inverted(&mut self, item: Item) {
        let op = match item {
            Item::Inst(inst) => match self.f.opcode(inst) {
                Opcode::Op(op) => Some(op),
                Opcode::Ir(_) => None,
            },
            _ => None,
        };
        match op {
            // What is tested for zero is the condition already.
            Some(Op::I32Eqz) => {}
            Some(op) if let Some(inverse) = inverse(op) => {
                self.code.op(inverse);
            }
            _ => {
                self.item(item);
                self.code.op(Op::I32Eqz);
            }
        }
    }

    fn item(&mut self, item: Item) {
        let variable = |variable: u32| self.variables[variable as usize];
        let framed = |local: u32| self.framed[local as usize];
        match item {
            Item::Inst(inst) => {
                self.set_line(inst);
                self.plain(inst);
            }
            Item::Param(param) => drop(self.code.local_get(LocalId(param))),
            Item::Get(v) => drop(self.code.local_get(variable(v))),
            Item::Set(v) => drop(self.code.local_set(variable(v))),
            Item::Tee(v) => drop(self.code.local_tee(variable(v))),
            Item::FrameGet(local) => drop(self.code.local_get(framed(local))),
            Item::FrameSet(local) => drop(self.code.local_set(framed(local))),
            Item::FrameAddr(local) => drop(self.code.local_addr(framed(local))),
            Item::Drop => drop(self.code.op(Op::Drop)),
            Item::Dup => drop(self.code.op(Op::Dup)),
        }
        self.depth_max = self.depth_max.max(self.code.depth());
    }

    /// Writes an instruction other than a branch.
    fn plain(&mut self, inst: Inst) {
        let Opcode::Op(op) = self.f.opcode(inst) else {
            unreachable!("operations that only the IR has are no code")
        };
        match op.imm_kind() {
            ImmKind::V128 | ImmKind::Lanes => self.code.vector(op, self.f.vector_imm(inst)),
            _ => self.code.inst(op, self.f.imm(inst)),
        };
    }

    fn set_line(&mut self, inst: Inst) {
        let func = self.module.func(self.f.func).expect("the function is defined in the module");
        let offset = self.f.locs[self.f.loc(inst).index()].offset;
        // Code before the first place has none, which the default says.
        self.code.source_place(func.place_at(offset).unwrap_or_default());
    }

    /// The name of the label that a block starts at, if it has one.
    fn name_of(&self, block: Block) -> Option<&'f str> {
        let module: &'f VerifiedModule = self.module;
        module.module().names.label(self.f.func, self.f.label(block)?)
    }

    fn label(&mut self, block: Block) -> LabelId {
        let name = self.name_of(block);
        let code = &mut self.code;
        *self.labels[block.index()].get_or_insert_with(|| match name {
            Some(name) => code.named_label(name),
            None => code.label(),
        })
    }

    /// Uses the addresses of the locals in the frame that the code does not use, in code that nothing
    /// reaches.
    fn keep_frame(&mut self, escapes: &[bool]) {
        let unused: Vec<LocalId> =
            self.framed.iter().zip(escapes).filter(|(_, used)| !**used).map(|(&l, _)| l).collect();
        if unused.is_empty() {
            return;
        }
        let label = self.code.label();
        self.code.line(0).bind_with_stack(label, &[]);
        for local in unused {
            self.code.local_addr(local).op(Op::Drop);
        }
        self.code.unreachable();
    }

    fn finish(self) -> Result<(), WriteError> {
        if self.code.locals().len() > limits::LOCALS_MAX {
            return Err(ExceedsLimit("LOCALS_MAX").into());
        }
        if self.depth_max as usize > limits::STACK_OPERANDS_MAX {
            return Err(ExceedsLimit("STACK_OPERANDS_MAX").into());
        }
        self.code.finish()?;
        Ok(())
    }
}

/// The comparison that is true where another one is false. Those of floats have none, except equality:
/// an ordering and its opposite are both false for NaN.
fn inverse(op: Op) -> Option<Op> {
    use Op::*;
    const PAIRS: [(Op, Op); 12] = [
        (I32Eq, I32Ne),
        (I32LtS, I32GeS),
        (I32LtU, I32GeU),
        (I32GtS, I32LeS),
        (I32GtU, I32LeU),
        (I64Eq, I64Ne),
        (I64LtS, I64GeS),
        (I64LtU, I64GeU),
        (I64GtS, I64LeS),
        (I64GtU, I64LeU),
        (F32Eq, F32Ne),
        (F64Eq, F64Ne),
    ];
    PAIRS.iter().find_map(|&(a, b)| match op {
        _ if op == a => Some(b),
        _ if op == b => Some(a),
        _ => None,
    })
}

#[cfg(test)]
mod tests;
