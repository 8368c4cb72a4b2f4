//! The programs that are measured, each kind in the engines that it is of interest in.

use crate::engine::{Contender, Engine, contenders};
use crate::program::{Program, kernels, wasi};

/// Programs of a kind, and the engines that run them.
pub(crate) struct Suite {
    /// First part of the names of its programs.
    pub(crate) key: &'static str,
    pub(crate) title: &'static str,
    /// A description for the tables.
    pub(crate) about: &'static str,
    pub(crate) programs: fn() -> Vec<Program>,
    /// The first one is the one that the others are compared with.
    contenders: &'static [Contender],
}

use Contender::{
    Checked, CheckedNoSignals, Interpreter, Liftoff, Native, Silverfir, Ssa, TurboFan, Wasmi,
    Wasmtime, WasmtimeChecked, WasmtimeInliner, WasmtimeNoSignals, WasmtimeUnmasked,
};

const COMPILERS: &[Contender] =
    &[Ssa, Wasmtime, WasmtimeInliner, TurboFan, Liftoff, Silverfir, Native];

/// All suites, in the order of their tables.
pub(crate) const ALL: [Suite; 5] = [
    Suite {
        key: "naive",
        title: "Naive slot bytecode",
        about: "The kernels as a simple compiler makes them: `clang -O0`, `mem2reg` and `llc -O0`. C variables are\n\
                locals; nothing else is optimised.",
        programs: || kernels("naive"),
        contenders: COMPILERS,
    },
    Suite {
        key: "O2",
        title: "Kernels by clang -O2",
        about: "",
        programs: || kernels("O2"),
        contenders: &[
            Ssa,
            Wasmtime,
            WasmtimeInliner,
            TurboFan,
            Liftoff,
            Silverfir,
            Native,
            Wasmi,
            Interpreter,
        ],
    },
    Suite {
        key: "O0",
        title: "Kernels by clang -O0",
        about: "C variables are in linear memory.",
        programs: || kernels("O0"),
        contenders: COMPILERS,
    },
    Suite {
        key: "wasi",
        title: "WASI programs by -O2",
        about: "Each engine has a WASI of its own. `files` and `host` measure that more than the engine.",
        programs: wasi,
        contenders: &[Ssa, Wasmtime, WasmtimeInliner, TurboFan, Liftoff, Wasmi, Interpreter],
    },
    Suite {
        key: "checks",
        title: "Explicit bounds checks",
        about: "The kernels by clang -O2, where instructions check each access of memory. Masks are those that\n\
                wasmtime puts on addresses against Spectre. Without signals, no instruction may fault.",
        programs: || kernels("O2"),
        contenders: &[
            Checked,
            Ssa,
            CheckedNoSignals,
            WasmtimeChecked,
            WasmtimeUnmasked,
            WasmtimeNoSignals,
        ],
    },
];

impl Suite {
    /// Its engines, but for those that this machine has not got.
    pub(crate) fn engines(&self) -> Vec<Box<dyn Engine>> {
        contenders(self.contenders)
    }
}
