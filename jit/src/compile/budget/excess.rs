//! Costs of instructions beyond the constants for each: by opcode, and by what made their operands.
//!
//! The constants of an estimate are those of ordinary instructions. Some opcodes take a code generator ten
//! times as much, wherever they stand. Others do in a chain only: the optimiser has rules for two operations of
//! a kind, as `rotl(rotl(x, y), z)` becomes `rotl(x, y + z)`, which apply again at each link of a chain, to what
//! the ones before have made. These count only if an operand was made by an operation of the same family, so that
//! code that rotates sums costs what it always did. The table in [`weights`](super::weights) is measured.

use slotvm_bytecode::{Effect, Op};
use slotvm_ssa::ir::Function;
use slotvm_ssa::ir::entity::{Block, Value};
use slotvm_ssa::ir::irop::{IrOp, Opcode};

use super::weights::COSTS;

const _: () = assert!(COSTS.len() == Op::ALL.len(), "the table is made again for other opcodes");

/// Points of time and bytes beyond the constants for instructions.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Excess {
    /// Points of time.
    pub time: u64,
    /// Bytes.
    pub bytes: u64,
}

impl std::ops::AddAssign for Excess {
    fn add_assign(&mut self, other: Excess) {
        self.time = self.time.saturating_add(other.time);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// The executed instructions and bytes that the constants are meant for: what scalar arithmetic takes. Of what is
/// allocated not all is touched, so the constants are below that.
const OF_ANY: [u32; 2] = [35_500, 2_200];
/// The same for an access of memory.
const OF_ACCESS: [u32; 2] = [44_500, 3_300];
/// The same bytes with registers in one pass, of any operation and of an access.
const BYTES_IN_ONE_PASS: [u32; 2] = [550, 1_400];
/// Points of time for a hundred executed instructions beyond that.
const POINTS_PER_100_EXECUTED: u64 = 32;
/// Factor by which an operation is dearer in a chain if it is combined there.
const COMBINED: u32 = 2;

/// Links at the start of a chain that take no more than elsewhere: addresses are often computed so.
const LINKS_FREE: u8 = 3;
/// Length of a chain from which each further link costs the same.
const LINKS_MAX: u8 = 8;

impl Excess {
    fn beyond([executed, bytes]: [u32; 2], [executed_base, bytes_base]: [u32; 2]) -> Excess {
        let executed = u64::from(executed.saturating_sub(executed_base));
        let bytes = bytes.saturating_sub(bytes_base).into();
        Excess { time: executed * POINTS_PER_100_EXECUTED / 100, bytes }
    }

    /// The cost of an opcode beyond that of any. Calls and operations on whole memories take their time in any
    /// way of compiling, and small functions may consist of one: only their memory counts.
    fn of_op(op: Op, costs: [u32; 2]) -> Excess {
        let excess = Excess::beyond(costs, of_any(op));
        let is_arithmetic = matches!(op.effect(), Effect::Pure | Effect::Trap);
        if is_arithmetic { excess } else { Excess { time: 0, ..excess } }
    }

    /// The cost of an opcode with the optimiser beyond that of any.
    pub(super) fn optimised(op: Op) -> Excess {
        let [executed, bytes, ..] = COSTS[op as usize];
        Excess::of_op(op, [executed, bytes])
    }

    /// The cost of an operation that is computed once more, with the optimiser. No bytes bound how often that is, so
    /// all of the time counts that the operation was measured to take.
    pub(super) fn copied(op: Opcode) -> Excess {
        const OF_ANY_POINTS: Excess = Excess { time: 1_800, bytes: 1_700 };
        let Opcode::Op(op) = op else { return OF_ANY_POINTS };
        let [executed, ..] = COSTS[op as usize];
        let time = u64::from(executed) * POINTS_PER_100_EXECUTED / 100;
        let bytes = OF_ANY_POINTS.bytes + Excess::optimised(op).bytes;
        Excess { time: time.max(OF_ANY_POINTS.time), bytes }
    }

    /// Multiplies the cost.
    pub(super) fn times(self, n: u64) -> Excess {
        Excess { time: self.time.saturating_mul(n), bytes: self.bytes.saturating_mul(n) }
    }

    /// The cost of an opcode without the optimiser beyond that of any.
    pub(super) fn unoptimised(op: Op) -> Excess {
        let [.., executed, bytes, _, _] = COSTS[op as usize];
        Excess::of_op(op, [executed, bytes])
    }

    /// The cost of an opcode with registers in one pass beyond that of any. No opcode takes more time than without
    /// the optimiser. The bytes are a quarter of those, or three quarters of the measured ones (the part that is
    /// touched), whichever is more.
    pub(super) fn in_one_pass(op: Op) -> Excess {
        let unoptimised = Excess::unoptimised(op);
        let [.., bytes] = COSTS[op as usize];
        let [of_any, of_access] = BYTES_IN_ONE_PASS;
        let base = if op.access_bytes().is_some() { of_access } else { of_any };
        let measured = u64::from(bytes.saturating_sub(base)) * 3 / 4;
        Excess { bytes: measured.max(unoptimised.bytes / 4), ..unoptimised }
    }

    /// The cost of an instruction that is a link of a chain beyond its cost elsewhere. The instructions of the chain
    /// all have a constant operand, or none has.
    fn chained(op: Op, has_const: bool, n_links: u8) -> Excess {
        let [alone, bytes_alone, plain, plain_bytes, with_const, with_const_bytes, ..] =
            COSTS[op as usize];
        let [executed, bytes] =
            if has_const { [with_const, with_const_bytes] } else { [plain, plain_bytes] };
        let [executed_base, bytes_base] = of_any(op);
        let base = [alone.max(executed_base), bytes_alone.max(bytes_base)];
        if op.effect() != Effect::Pure || executed < COMBINED * base[0] {
            return Excess::default();
        }
        let Excess { time, bytes } = Excess::beyond([executed, bytes], base);
        let n_links = u64::from(n_links.saturating_sub(LINKS_FREE));
        let part = |all: u64| all * n_links / u64::from(LINKS_MAX - LINKS_FREE);
        Excess { time: part(time), bytes: part(bytes) }
    }
}

fn of_any(op: Op) -> [u32; 2] {
    if op.access_bytes().is_some() { OF_ACCESS } else { OF_ANY }
}

/// The origin of a value.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Maker {
    /// No counts.
    Opaque,
    /// It is not known, so it may be anything.
    Unknown,
    Const,
    /// An operation of this family, at this position or later in a chain.
    Op(Op, u8),
}

impl Maker {
    /// The links of the chain of a family that ends here.
    fn n_links(self, family: Op) -> u8 {
        match self {
            Maker::Op(op, n_links) if op == family => n_links,
            Maker::Unknown => LINKS_MAX,
            _ => 0,
        }
    }
}

/// The cost of the chains in a function to the optimiser. If slots hide values from us that it finds to be the same,
/// whatever is read from one may be part of a chain.
pub(super) fn rewriting(func: &Function, slots_hide: bool) -> Excess {
    let mut makers = vec![Maker::Unknown; func.n_values()];
    let mut excess = Excess::default();
    for block in func.blocks() {
        for (i, &param) in func.params(block).iter().enumerate() {
            makers[param.index()] = maker_of_param(func, block, i, param, &makers);
        }
        for &inst in func.insts(block) {
            let maker = match func.opcode(inst) {
                Opcode::Op(Op::I32Const | Op::I64Const) => Maker::Const,
                Opcode::Op(op) => {
                    let operands = func.operands(inst).iter().map(|value| makers[value.index()]);
                    let has_const = operands.clone().any(|maker| maker == Maker::Const);
                    let n_links = operands.map(|maker| maker.n_links(family(op))).max();
                    let n_links = n_links.map_or(1, |n| LINKS_MAX.min(n + 1));
                    excess += Excess::chained(op, has_const, n_links);
                    Maker::Op(family(op), n_links)
                }
                Opcode::Ir(IrOp::SlotGet) if slots_hide => Maker::Unknown,
                Opcode::Ir(_) => Maker::Opaque,
            };
            for result in func.results(inst) {
                makers[result.index()] = maker;
            }
        }
    }
    excess
}

/// The origin of a block parameter: the optimiser sees through those that get the same value from everywhere.
fn maker_of_param(
    func: &Function,
    block: Block,
    i: usize,
    param: Value,
    makers: &[Maker],
) -> Maker {
    let edges = func.pred_edges(block).iter();
    let mut args = edges.map(|&edge| func.edge_args(edge)[i]).filter(|&arg| arg != param);
    match args.next() {
        Some(arg) if block != Function::ENTRY && args.all(|other| other == arg) => {
            makers[arg.index()]
        }
        _ => Maker::Opaque,
    }
}

/// The opcode that stands for all with which the rules for one combine it.
fn family(op: Op) -> Op {
    use Op::*;
    match op {
        // Where the flag is a comparison, the first result is a plain sum.
        I32Sub | I32AddOverflowS | I32AddOverflowU | I32SubOverflowS | I32SubOverflowU => I32Add,
        I64Sub | I64AddOverflowS | I64AddOverflowU | I64SubOverflowS | I64SubOverflowU => I64Add,
        I32Rotr => I32Rotl,
        I64Rotr => I64Rotl,
        op => op,
    }
}

#[cfg(test)]
mod tests {
    use slotvm_bytecode::{text, verify};
    use slotvm_ssa::construction::build::{BuildOptions, BuildScratch, build};
    use slotvm_ssa::construction::promote::{Scratch, promote};

    use super::*;

    /// The cost of the chains in the only function of a text, in SSA form, and in slot form if slots hide values.
    fn costs(body: &str) -> [Excess; 2] {
        let source = format!("func f(x: i64, n: i32) -> i64 {{ local y: i64 {body} return }}");
        let module = verify(text::parse(&source).expect("it is text")).expect("it is well-typed");
        let slot_form = build(&module, 0, &BuildOptions::default(), &mut BuildScratch::default());
        let mut promoted = slot_form.clone();
        promote(&mut promoted, &mut Scratch::default());
        [rewriting(&promoted, false), rewriting(&slot_form, true)]
    }

    const NOTHING: Excess = Excess { time: 0, bytes: 0 };

    #[test]
    fn links_of_chains_cost_more() {
        let [short, long, longer] = [100, 200, 300].map(|n| {
            let [promoted, hidden] = costs(&format!("local.get x {}", "dup i64.rotr ".repeat(n)));
            assert!(hidden.time >= promoted.time && hidden.bytes >= promoted.bytes);
            promoted
        });
        assert!(short.time > 90 * 70_000, "{short:?}");
        assert_eq!(long.time - short.time, longer.time - long.time);
        assert_eq!(long.bytes - short.bytes, longer.bytes - long.bytes);
        let [sums, _] = costs(&format!("local.get x {}", "i64.const 3 i64.add ".repeat(100)));
        assert!(sums.time > 90 * 50_000, "{sums:?}");
    }

    #[test]
    fn what_is_no_chain_costs_nothing_more() {
        for body in [
            // Of three links, of another operation between, and without constants.
            "local.get x i64.const 3 i64.add i64.const 5 i64.add i64.const 7 i64.sub".to_owned(),
            format!("local.get x {}", "dup i64.rotr dup i64.xor ".repeat(100)),
            format!("local.get x {}", "dup i64.add ".repeat(100)),
        ] {
            assert_eq!(costs(&body)[0], NOTHING, "{body}");
        }
    }

    #[test]
    fn slots_and_blocks_do_not_hide_chains() {
        let link = "local.get y local.get y i64.rotr local.set y ";
        let [promoted, hidden] = costs(&format!("{}local.get y", link.repeat(100)));
        assert!(promoted.time > 90 * 70_000, "{promoted:?}");
        assert!(hidden.time >= promoted.time, "{hidden:?}");
        let blocks: String =
            (0..100).map(|i| format!("{link} local.get n br_if b{i} b{i}: ")).collect();
        let [promoted, _] = costs(&format!("{blocks} local.get y"));
        assert!(promoted.time > 90 * 70_000, "{promoted:?}");
    }

    #[test]
    fn costly_opcodes_cost_more_wherever_they_stand() {
        let lanes = Op::I32x4TruncSatF32x4U;
        for excess in
            [Excess::optimised(lanes), Excess::unoptimised(lanes), Excess::in_one_pass(lanes)]
        {
            assert!(excess.time > 20_000 && excess.bytes > 2_000, "{excess:?}");
        }
        for op in [Op::I64Add, Op::I32Xor, Op::F64Mul, Op::I32Const, Op::LocalGet, Op::I32Load] {
            assert_eq!(Excess::optimised(op), NOTHING, "{op:?}");
            let in_one_pass = Excess::in_one_pass(op);
            assert!(in_one_pass.time == 0 && in_one_pass.bytes < 350, "{op:?}: {in_one_pass:?}");
        }
        let call = Excess::optimised(Op::CallIndirect);
        assert!(call.time == 0 && call.bytes > 5_000, "{call:?}");
    }

    #[test]
    fn copies_take_no_more_time_than_what_is_charged() {
        for op in Op::ALL {
            let [executed, ..] = COSTS[*op as usize];
            let points = u64::from(executed) * POINTS_PER_100_EXECUTED / 100;
            assert!(points <= Excess::copied(Opcode::Op(*op)).time, "{op:?}");
        }
        assert!(Excess::copied(Opcode::Op(Op::F64x2PromoteLowF32x4)).time > 7_000);
    }

    #[test]
    fn one_pass_takes_no_more_time_than_what_is_charged() {
        for op in Op::ALL {
            let [.., unoptimised, _, in_one_pass, _] = COSTS[*op as usize];
            assert!(in_one_pass <= unoptimised.max(of_any(*op)[0]), "{op:?}");
        }
    }
}
