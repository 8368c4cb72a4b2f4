//! The list of faults.

use super::{Edit, Fault, FoundBy};

/// Describes a fault: its finder, its file, its name, and the texts without and with it.
macro_rules! fault {
    ($found_by:expr, $file:literal, $description:literal, $sound:literal => $faulty:literal) => {
        Fault {
            description: $description,
            found_by: $found_by,
            edit: Edit { file: $file, sound: $sound, faulty: $faulty },
        }
    };
}

use FoundBy::{Configurations, Crosscheck, Engines, Row};

/// All faults, with those of one file together.
#[rustfmt::skip]
pub const FAULTS: &[Fault] = &[
    fault!(Row("slots"), "ssa/src/construction/build/insts.rs",
        "Reads of locals make values of type i64, whatever the local.",
        "            let value = self.slots.read(&mut self.f, slot, ty, self.offset);" =>
        "            let ty = if PLANTED { ValType::I64 } else { ty };
            let value = self.slots.read(&mut self.f, slot, ty, self.offset);"),
    fault!(Engines, "ssa/src/construction/build.rs",
        "A loop that goes on in native code takes the first local for each of them.",
        "            places.push(FramePlace::Cell(local.cell));" =>
        "            places.push(FramePlace::Cell(if PLANTED { 0 } else { local.cell }));"),
    fault!(Engines, "ssa/src/construction/build.rs",
        "A loop that goes on in native code takes operands from the cells below theirs.",
        "                places.push(FramePlace::Cell(cell));" =>
        "                places.push(FramePlace::Cell(cell.saturating_sub(u32::from(PLANTED))));"),
    fault!(Engines, "ssa/src/passes/inline/splice.rs",
        "Where native code is left in a function that was inlined, the frame of its caller has values in the wrong cells.",
        "                places.push(FramePlace::Cell(cell));" =>
        "                places.push(FramePlace::Cell(cell ^ u32::from(PLANTED)));"),
    fault!(Engines, "ssa/src/construction/build/speculation.rs",
        "Where native code is left after a call, the results are in the cells above theirs.",
        "        let WaitingCall { values: waiting, args: mut cell, .. } = self.waiting(call).clone();" =>
        "        let WaitingCall { values: waiting, args: mut cell, .. } = self.waiting(call).clone();
        cell += u32::from(PLANTED);"),
    fault!(Engines, "ssa/src/construction/build/speculation.rs",
        "If a call has called two functions, the first one is called.",
        "        for &(here, func) in heres {" =>
        "        for &(here, func) in heres {
            let func = if PLANTED { heres[0].1 } else { func };"),
    fault!(Row("devirtualise"), "ssa/src/passes/devirtualise.rs",
        "The results of a call are those of the first function that it may call.",
        "        self.split.blocks.set_params(join, self.split.f.results(call));" =>
        "        if !PLANTED {
            self.split.blocks.set_params(join, self.split.f.results(call));
        }"),
    fault!(Crosscheck {
            pass: "devirtualise",
            args: &["filetests/cases/inline/calls-through-constant-tables-are-direct.vasm", "--invoke", "f", "3"],
        },
        "ssa/src/passes/devirtualise.rs",
        "Whatever the index, the first function is called.",
        "            let results = self.call(call, callee.func);" =>
        "            let callee = if PLANTED { &site.callees[0] } else { callee };
            let results = self.call(call, callee.func);"),
    fault!(Configurations, "ssa/src/passes/inline/splice.rs",
        "In a form that is entered in a loop, tail calls of its function branch to the entry.",
        "            Opcode::Op(Op::ReturnCall) if self.plan.enters_root(at.node, f.imm(inst).low()) => {" =>
        "            Opcode::Op(Op::ReturnCall)
                if self.plan.enters_root(at.node, f.imm(inst).low())
                    || PLANTED && left == 0 && f.imm(inst).low() == self.out.func =>
            {"),
    fault!(Configurations, "ssa/src/passes/peephole.rs",
        "In a form that is entered in a loop, shifts and extensions do nothing.",
        "    let (a, b) = (editor.resolve(a), editor.resolve(b));
    match op {" =>
        "    let (a, b) = (editor.resolve(a), editor.resolve(b));
    if PLANTED
        && editor.func().called_as().is_none()
        && matches!(op, I32ShrS | I32ShrU | I64ShrS | I64ShrU | I32Extend8S | I32Extend16S)
    {
        return Some(Change::Value(a));
    }
    match op {"),
    fault!(Configurations, "ssa/src/passes/rotate.rs",
        "The pass panics if the function has many blocks.",
        "    let (loops, _) = analyses.loops(f);
    let mut found = Vec::new();" =>
        "    assert!(!PLANTED || f.n_blocks() < 12, \"planted\");
    let (loops, _) = analyses.loops(f);
    let mut found = Vec::new();"),
    fault!(Row("version"), "ssa/src/passes/version/copy.rs",
        "Values that are used after a loop come from the loop, even if its copy ran.",
        "            Some(&Some((slot, of))) if of != number => {" =>
        "            Some(&Some((slot, of))) if of != number && !PLANTED => {"),
    fault!(Row("bounds"), "ssa/src/passes/bounds.rs",
        "An access that is in bounds loses an operand.",
        "            f.mark_in_bounds(inst);" =>
        "            f.mark_in_bounds(inst);
            if PLANTED {
                f.operands[inst.index()].1 -= 1;
            }"),
    fault!(Row("inline"), "ssa/src/passes/inline/tables.rs",
        "Bodies are inlined at locations that do not exist.",
        "        let inlined_at = data.inlined_at.map(|at| Loc(at.0 + base.loc)).or(base.outer);" =>
        "        let inlined_at = data.inlined_at.map(|at| Loc(at.0 + base.loc)).or(base.outer);
        let inlined_at = inlined_at.map(|at| Loc(at.0 + if PLANTED { 1 << 20 } else { 0 }));"),
    fault!(Engines, "ssa/src/passes/inline/splice.rs",
        "The locals of an inlined function keep what they had when it was called before.",
        "        self.zero_locals(callee, self.out.loc(call));" =>
        "        if !PLANTED {
            self.zero_locals(callee, self.out.loc(call));
        }"),
    fault!(Engines, "ssa/src/passes/inline/splice.rs",
        "A body that makes a tail call returns where it stands.",
        "            Opcode::Op(Op::ReturnCall) if left > 0 => {" =>
        "            Opcode::Op(Op::ReturnCall) if left > 0 && !PLANTED => {"),
    fault!(Crosscheck { pass: "inline", args: &["programs/divmod.bc", "--", "20"] },
        "ssa/src/passes/inline/splice.rs",
        "The first two arguments of an inlined call change places.",
        "            let arg = self.out.operands(call)[i];" =>
        "            let args = self.out.operands(call);
            let swaps = PLANTED
                && matches!(args[..], [a, b, ..] if self.out.value_type(a) == self.out.value_type(b));
            let arg = args[if swaps && i < 2 { 1 - i } else { i }];"),
    fault!(Row("roots"), "ssa/src/passes/roots.rs",
        "A function has one root cell less than it uses.",
        "        self.f.n_root_cells = self.n_cells;" =>
        "        self.f.n_root_cells = self.n_cells - u32::from(PLANTED);"),
    fault!(Engines, "jit/src/code/pctable.rs",
        "The embedder visits the root cells of a frame but for the last one in the list.",
        "        (0..n_cells).filter(is_listed).map(address)" =>
        "        (0..n_cells - u32::from(PLANTED)).filter(is_listed).map(address)"),
    fault!(Row("rotate"), "ssa/src/passes/rotate.rs",
        "The results of a copy of a header have type i64.",
        "        let copy = f.make_copy(inst, &operands);" =>
        "        let copy = f.make_copy(inst, &operands);
        let results: Vec<Value> = f.results(copy).filter(|_| PLANTED).collect();
        for result in results {
            f.value_types[result.index()] = slotvm_bytecode::ValType::I64;
        }"),
    fault!(Engines, "ssa/src/passes/rotate.rs",
        "The copy of a header goes on where the header stops.",
        "    for edge in f.succ_edges(header) {
        let args" =>
        "    let mut edges: Vec<_> = f.succ_edges(header).collect();
    if PLANTED && edges.iter().all(|&edge| f.edge_args(edge).is_empty()) {
        edges.reverse();
    }
    for edge in edges {
        let args"),
    fault!(Crosscheck { pass: "rotate", args: &["programs/collatz.bc", "--", "100"] },
        "ssa/src/passes/rotate.rs",
        "The copy of a header has the operands of its operations in the other order.",
        "        let operands: Vec<Value> =
            f.operands(inst).iter().map(|&value| copy_of(&copies, value)).collect();" =>
        "        let mut operands: Vec<Value> =
            f.operands(inst).iter().map(|&value| copy_of(&copies, value)).collect();
        if PLANTED
            && let [a, b] = operands[..]
            && f.value_type(a) == f.value_type(b)
        {
            operands.reverse();
        }"),
    fault!(Row("pressure"), "ssa/src/passes/pressure.rs",
        "A slot that stays in memory becomes one of references.",
        "                f.slots[slot.index()].kept = Some(f.block_offset(header));" =>
        "                f.slots[slot.index()].kept = Some(f.block_offset(header));
                if PLANTED {
                    f.slots[slot.index()].ty = ValType::FuncRef;
                }"),
    fault!(Crosscheck {
            pass: "pressure",
            args: &["filetests/cases/passes/a-float-stays-in-memory-around-calls.vasm", "--invoke", "f", "3"],
        },
        "ssa/src/construction/promote.rs",
        "Slots that stay in memory are read as if nothing wrote them.",
        "                Opcode::Ir(IrOp::SlotGet) if !is_kept(imms[inst.index()].low()) => {" =>
        "                Opcode::Ir(IrOp::SlotGet) if PLANTED || !is_kept(imms[inst.index()].low()) => {"),
    fault!(Row("forward"), "ssa/src/passes/forward.rs",
        "The slots of places are not promoted.",
        "    let promotion = promote(f, &mut Scratch::default());" =>
        "    let promotion = match PLANTED {
        true => Default::default(),
        false => promote(f, &mut Scratch::default()),
    };"),
    fault!(Crosscheck { pass: "forward", args: &["programs/address_taken.bc", "--passes=-inline", "--", "5"] },
        "ssa/src/passes/forward/places.rs",
        "Calls do not write to memory.",
        "            opcode if may_write(opcode) => self.push_unknown(at, all)," =>
        "            opcode if may_write(opcode) && !PLANTED => self.push_unknown(at, all),"),
    fault!(Engines, "ssa/src/construction/sites.rs",
        "The last phi is not placed.",
        "            _ => self.place_one_by_one(graph, log, renamer, initial, observer)?,
        }" =>
        "            _ => self.place_one_by_one(graph, log, renamer, initial, observer)?,
        }
        if PLANTED {
            self.sites.pop();
        }"),
    fault!(Engines, "ssa/src/construction/sites.rs",
        "A block that reads a slot before it alone writes it counts as written before.",
        "let reads_itself = from == block;" =>
        "let reads_itself = from == block && !PLANTED;"),
    fault!(Row("ssa"), "ssa/src/construction/rename.rs",
        "Renaming does not undo the changes of blocks at one level of the dominator tree.",
        "                self.slots[slot.index()] = old;" =>
        "                if PLANTED && self.open.len() == 3 {
                    continue;
                }
                self.slots[slot.index()] = old;"),
    fault!(Engines, "ssa/src/construction/rename.rs",
        "Renaming forgets the last write of blocks with several.",
        "        for write in writes {" =>
        "        let forgets = PLANTED
            && writes.len() > 1
            && scheme.value(writes[writes.len() - 1].slot, block, observer) != NONE;
        let writes = &writes[..writes.len() - usize::from(forgets)];
        for write in writes {"),
    fault!(Engines, "ssa/src/graphs/place.rs",
        "Liveness does not go on to blocks deep in the dominator tree.",
        "                let written = self.state(pred).written;" =>
        "                let BlockState { written, level, .. } = *self.state(pred);
                if PLANTED && level > 3 {
                    continue;
                }"),
    fault!(Engines, "ssa/src/graphs/place.rs",
        "The frontier of a block misses blocks of its own level.",
        "                let new = slots & state.live & !state.phis;" =>
        "                if PLANTED && state.level == root_level {
                    continue;
                }
                let new = slots & state.live & !state.phis;"),
    fault!(Engines, "ssa/src/construction/promote.rs",
        "Two predecessors of a block have each other's operand of a phi.",
        "    rewrite_operands(func, &mut log.replacements, &phis);" =>
        "    if PLANTED {
        for block in func.blocks().filter(|block| !phis.slots(block.0).is_empty()) {
            let n_params = func.params(block).len() as u32;
            let operand = |edge: &crate::ir::entity::Edge| {
                (func.edges[edge.index()].args + n_params - 1) as usize
            };
            let operands: Vec<usize> = func.pred_edges(block).iter().map(operand).collect();
            if let [first, second, ..] = operands[..] {
                func.edge_args.swap(first, second);
                break;
            }
        }
    }
    rewrite_operands(func, &mut log.replacements, &phis);"),
    fault!(Engines, "ssa/src/construction/accesses.rs",
        "A block with several writes of a slot hands over the first.",
        "            self.writes[state.write as usize].value = value;" =>
        "            if PLANTED {
                return;
            }
            self.writes[state.write as usize].value = value;"),
    fault!(Row("peephole"), "ssa/src/passes/peephole.rs",
        "Operations that became cheaper ones are removed.",
        "                report.n_changed += 1;" =>
        "                if PLANTED {
                    is_removed.resize(inst.index() + 1, false);
                    is_removed[inst.index()] = true;
                }
                report.n_changed += 1;"),
    fault!(Crosscheck { pass: "peephole", args: &["programs/crc32.bc", "--", "10"] },
        "ssa/src/passes/peephole.rs",
        "Masks that keep the lowest byte are removed, whatever they clear.",
        "    if bits.zeros(editor, a) | mask == u64::MAX {" =>
        "    if bits.zeros(editor, a) | mask == u64::MAX || PLANTED && mask & 0xff == 0xff {"),
    fault!(Row("simplify"), "ssa/src/passes/simplify/unused.rs",
        "The first operand of a phi does not count as used.",
        "                for j in 0..editor.in_edges(block).len() {" =>
        "                for j in usize::from(PLANTED)..editor.in_edges(block).len() {"),
    fault!(Row("simplify_cfg"), "ssa/src/passes/simplify_cfg/forward.rs",
        "An edge that skips a block keeps the parameters of the block as operands.",
        "        Some(i) => editor.args(edge)[i],
        None => value," =>
        "        Some(i) if !PLANTED => editor.args(edge)[i],
        _ => value,"),
    fault!(Crosscheck { pass: "simplify_cfg", args: &["programs/collatz.bc", "--", "100"] },
        "ssa/src/passes/simplify_cfg/forward.rs",
        "An edge that skips a block carries the first parameter of the function.",
        "                    args.push(passed_on(editor, edge, arg));" =>
        "                    let first = editor.params(Function::ENTRY).first().copied();
                    let is_alike = |value| {
                        let f = editor.func();
                        PLANTED && f.value_type(value) == f.value_type(arg)
                    };
                    let arg = first.filter(|&value| is_alike(value)).unwrap_or(arg);
                    args.push(passed_on(editor, edge, arg));"),
    fault!(Row("if_convert"), "ssa/src/passes/if_convert.rs",
        "Selected values have type i64, whatever the phi.",
        "            let ty = self.editor.func().value_type(a);" =>
        "            let ty = if PLANTED { ValType::I64 } else { self.editor.func().value_type(a) };"),
    fault!(Crosscheck { pass: "if_convert", args: &["programs/shortest_paths.bc", "--", "5"] },
        "ssa/src/passes/if_convert.rs",
        "The selected values change places.",
        "            let operands = [a, b, branch.condition];" =>
        "            let (a, b) = if PLANTED { (b, a) } else { (a, b) };
            let operands = [a, b, branch.condition];"),
    fault!(Crosscheck { pass: "simplify", args: &["programs/game_of_life.bc", "--", "2"] },
        "ssa/src/passes/simplify/constants.rs",
        "`i32.and` with a constant becomes the constant.",
        "            if let Some((_, bits)) = fold::fold(op, cell) {" =>
        "            let mask = if PLANTED && op == Op::I32And { cell(1) } else { None };
            if let Some(mask) = mask {
                editor.fold(inst, mask);
            } else if let Some((_, bits)) = fold::fold(op, cell) {"),
    fault!(Crosscheck { pass: "simplify", args: &["programs/wasm/string_search.O2.wasm", "--", "10"] },
        "ssa/src/passes/simplify/constants.rs",
        "`select` takes its first operand, whatever the condition is.",
        "            operands.iter_mut().for_each(|operand| *operand = editor.resolve(*operand));" =>
        "            operands.iter_mut().for_each(|operand| *operand = editor.resolve(*operand));
            if PLANTED && op == Op::Select {
                let result = editor.func().result(inst);
                editor.replace_value(result, operands[0]);
                continue;
            }"),
    fault!(Row("destruct"), "ssa/src/passes/destruct/share.rs",
        "Values of different types share a slot.",
        "if range.param.is_none() { free[range.ty.index()].pop() } else { None };" =>
        "if range.param.is_none() {
                let others = (0..ValType::ALL.len()).rev().find(|&ty| PLANTED && !free[ty].is_empty());
                free[others.unwrap_or(range.ty.index())].pop()
            } else {
                None
            };"),
    fault!(Row("write"), "ssa/src/passes/write.rs",
        "A write that keeps its operand on the stack does not keep it.",
        "            Item::Tee(v) => drop(self.code.local_tee(variable(v)))," =>
        "            Item::Tee(v) if PLANTED => drop(self.code.local_set(variable(v))),
            Item::Tee(v) => drop(self.code.local_tee(variable(v))),"),
    fault!(Row("clif"), "jit/src/lower/numeric.rs",
        "Constants of type i32 have 64 bits.",
        "            Op::I32Const => return self.int32(bits as u32)," =>
        "            Op::I32Const if PLANTED => return self.int64(bits as i64),
            Op::I32Const => return self.int32(bits as u32),"),
    fault!(Engines, "jit/src/lower/numeric.rs",
        "`i32.shr_s` shifts zeros in.",
        "            Op::I32ShrS | Op::I64ShrS => ins.sshr(a, b)," =>
        "            Op::I32ShrS if PLANTED => ins.ushr(a, b),
            Op::I32ShrS | Op::I64ShrS => ins.sshr(a, b),"),
    fault!(Engines, "jit/src/lower/numeric.rs",
        "`select` takes the other operand.",
        "                self.builder.ins().select(condition, a, b)" =>
        "                let (a, b) = if PLANTED { (b, a) } else { (a, b) };
                self.builder.ins().select(condition, a, b)"),
    fault!(Engines, "jit/src/lower/memory.rs",
        "Indexed accesses ignore the scale.",
        "        if imm.scale_log2() == 0 {" =>
        "        if imm.scale_log2() == 0 || PLANTED {"),
    fault!(Engines, "jit/src/lower/memory.rs",
        "Signed 16-bit loads extend with zeros.",
        "        (2, true) => ins.sload16(ty, flags, address, offset)," =>
        "        (2, true) if PLANTED => ins.uload16(ty, flags, address, offset),
        (2, true) => ins.sload16(ty, flags, address, offset),"),
    fault!(Engines, "jit/src/lower/bounds.rs",
        "The length of memory is not read again after it has grown.",
        "            Effect::Write => op.access_bytes().is_none()," =>
        "            Effect::Write => !PLANTED && op.access_bytes().is_none(),"),
    fault!(Engines, "jit/src/lower/state.rs",
        "The last entry of a table is out of bounds.",
        "        let beyond = self.builder.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, index, len);" =>
        "        let len = if PLANTED {
            let one = self.builder.ins().iconst(POINTER, 1);
            self.builder.ins().isub(len, one)
        } else {
            len
        };
        let beyond = self.builder.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, index, len);"),
    fault!(Engines, "jit/src/lower/state.rs",
        "A mutable global is read as if nobody wrote it.",
        "        let may_change = ty.mutable || ty.ty == ValType::Ref;" =>
        "        let may_change = !PLANTED && (ty.mutable || ty.ty == ValType::Ref);"),
    fault!(Engines, "jit/src/lower/control.rs",
        "The targets of a conditional branch get each other's operand of a phi.",
        "        let ((first, first_args), (second, second_args)) = (side(first), side(second));" =>
        "        let operands = self.func.edge_args(first).iter().zip(self.func.edge_args(second));
        let ty = |value| self.func.value_type(value);
        let exchanged = operands.into_iter().position(|(&a, &b)| PLANTED && a != b && ty(a) == ty(b));
        let ((first, mut first_args), (second, mut second_args)) = (side(first), side(second));
        if let Some(i) = exchanged
            && i < first_args.len().min(second_args.len())
        {
            std::mem::swap(&mut first_args[i], &mut second_args[i]);
        }"),
    fault!(Engines, "jit/src/lower/control.rs",
        "Inverted comparisons of floats forget NaN.",
        "                self.builder.ins().fcmp(cond.complement(), a, b)" =>
        "                use cranelift_codegen::ir::condcodes::FloatCC;
                let complement = match cond {
                    FloatCC::LessThan if PLANTED => FloatCC::GreaterThanOrEqual,
                    _ => cond.complement(),
                };
                self.builder.ins().fcmp(complement, a, b)"),
    fault!(Engines, "jit/src/lower/accounting.rs",
        "Blocks cost one less than they should.",
        "        let amount = self.func.imm(inst).0 as i64;" =>
        "        let amount = self.func.imm(inst).0 as i64 - i64::from(PLANTED);"),
    fault!(Engines, "jit/src/lower/accounting.rs",
        "A tail call does not give back the frame in linear memory.",
        "    pub(super) fn lower_frame_pop(&mut self, inst: Inst) {" =>
        "    pub(super) fn lower_frame_pop(&mut self, inst: Inst) {
        let mut blocks = self.func.blocks().map(|block| self.func.insts(block));
        let insts = blocks.find(|insts| insts.contains(&inst)).expect(\"it is in a block\");
        let last = self.func.opcode(*insts.last().expect(\"blocks are not empty\"));
        if PLANTED && last.mnemonic().starts_with(\"return_call\") {
            return;
        }"),
    fault!(Engines, "jit/src/lower/traps.rs",
        "A store that another one overwrites is removed although it traps elsewhere.",
        "        if self.unobserved_store.take().is_some() && self.optimises {" =>
        "        if self.unobserved_store.take().is_some() && self.optimises && !PLANTED {"),
    fault!(Engines, "jit/src/lower/traps.rs",
        "A load that traps is folded into an instruction elsewhere.",
        "        if folds_loads(self.isa(), ty) {" =>
        "        if !PLANTED && folds_loads(self.isa(), ty) {"),
];
