//! Properties of a program, observed while the interpreter runs it, and statistics of many programs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex};

use slotvm_bytecode::{Op, TrapCode, VerifiedModule};
use slotvm_runtime::{TraceEvent, TraceFn};
use slotvm_ssa::construction::build::{BuildOptions, BuildScratch, build};
use slotvm_ssa::graphs::cfg::Cfg;
use slotvm_ssa::graphs::loops::LoopForest;
use slotvm_ssa::ir::Function;

use super::{End, Outcome};

/// Watches a run.
#[derive(Debug, Default)]
pub(super) struct Watch {
    n_insts: usize,
    /// The functions that executed at least one instruction.
    funcs: BTreeSet<u32>,
    /// Pairs of caller and callee, tail calls included.
    calls: BTreeSet<(u32, u32)>,
    /// Depth, function and opcode of the last instruction.
    last: Option<(usize, u32, Op)>,
}

impl Watch {
    /// A watch, and the trace function for the interpreter that updates it.
    pub(super) fn start() -> (Arc<Mutex<Watch>>, TraceFn) {
        let watch = Arc::new(Mutex::new(Watch::default()));
        let shared = watch.clone();
        let trace = move |event: &TraceEvent<'_>| {
            shared.lock().expect("the watch does not panic").step(event);
        };
        (watch, Arc::new(trace))
    }

    fn step(&mut self, event: &TraceEvent<'_>) {
        let &TraceEvent { depth, func, inst, .. } = event;
        self.n_insts += 1;
        self.funcs.insert(func);
        if let Some((last_depth, caller, op)) = self.last {
            let is_tail_call = matches!(op, Op::ReturnCall | Op::ReturnCallIndirect);
            if depth > last_depth || is_tail_call && depth == last_depth {
                self.calls.insert((caller, func));
            }
        }
        self.last = Some((depth, func, inst.op));
    }

    /// Whether an executed function called itself, directly or through other functions.
    fn is_recursive(&self, entry: u32, n_funcs: u32) -> bool {
        let callees =
            |func: u32| self.calls.range((func, 0)..=(func, u32::MAX)).map(|&(_, callee)| callee);
        LoopForest::new(&Cfg::new(entry, (0..n_funcs).map(callees))).n_loops() > 0
    }

    /// Whether a function that was executed has a loop with several entries.
    fn is_irreducible(&self, module: &VerifiedModule) -> bool {
        let mut scratch = BuildScratch::default();
        self.funcs.iter().any(|&func| {
            let f = build(module, func, &BuildOptions::default(), &mut scratch);
            let succs = |block| f.succ_edges(block).map(|edge| f.edge_dst(edge).0);
            let forest = LoopForest::new(&Cfg::new(Function::ENTRY.0, f.blocks().map(succs)));
            forest.loops().any(|it| forest.is_irreducible(it))
        })
    }
}

/// Properties of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Number of instructions that the interpreter executed.
    pub n_insts: usize,
    /// Whether an executed function has an irreducible loop.
    pub irreducible: bool,
    /// Whether a function was called by functions that it had called. Calls through tables and tail calls
    /// count.
    pub recursive: bool,
    /// The end of the call with all its fuel.
    pub end: End,
}

impl Facts {
    pub(super) fn new(
        module: &VerifiedModule,
        func: u32,
        watch: &Watch,
        outcome: &Outcome,
    ) -> Facts {
        Facts {
            n_insts: watch.n_insts,
            irreducible: watch.is_irreducible(module),
            recursive: watch.is_recursive(func, module.n_funcs()),
            end: outcome.end().clone(),
        }
    }

    /// Whether it ended with a trap of its own. Lack of fuel does not count.
    pub fn traps(&self) -> bool {
        matches!(&self.end, End::Trapped(code, ..) if *code != TrapCode::OutOfFuel)
    }
}

/// Statistics of programs.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// Number of programs.
    pub n: usize,
    /// Number that executed a function with an irreducible loop.
    pub n_irreducible: usize,
    /// Number that recursed.
    pub n_recursive: usize,
    /// Number that trapped, except for lack of fuel.
    pub n_trapping: usize,
    ends: BTreeMap<String, usize>,
    n_insts: Vec<usize>,
}

impl Survey {
    /// Counts a program.
    pub fn add(&mut self, facts: &Facts) {
        self.n += 1;
        self.n_irreducible += usize::from(facts.irreducible);
        self.n_recursive += usize::from(facts.recursive);
        self.n_trapping += usize::from(facts.traps());
        let end = match &facts.end {
            End::Returned(_) => "returned".to_owned(),
            End::HostFailed(_) => "a host function failed".to_owned(),
            End::Trapped(code, ..) => format!("trap: {code}"),
            End::Refused(reason) => format!("refused: {reason}"),
        };
        *self.ends.entry(end).or_default() += 1;
        self.n_insts.push(facts.n_insts);
    }
}

impl fmt::Display for Survey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = |what: &str, n: usize| {
            let percent = 100.0 * n as f64 / self.n.max(1) as f64;
            writeln!(f, "{n:7} {percent:5.1} %  {what}")
        };
        line("programs", self.n)?;
        line("with an irreducible loop in a function that ran", self.n_irreducible)?;
        line("recursive when executed", self.n_recursive)?;
        line("trapped, except for lack of fuel", self.n_trapping)?;
        for (end, &n) in &self.ends {
            line(end, n)?;
        }
        let mut n_insts = self.n_insts.clone();
        n_insts.sort_unstable();
        let decile = |i: usize| n_insts.get(i * (n_insts.len().max(1) - 1) / 10);
        let deciles: Vec<_> = (0..=10).filter_map(decile).collect();
        writeln!(f, "instructions executed, in deciles: {deciles:?}")
    }
}
