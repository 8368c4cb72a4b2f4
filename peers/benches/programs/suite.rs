//! The programs that are measured, each kind in the engines that it is of interest in.

use crate::engine::{Contender, Engine, contenders};
use crate::program::{Program, kernels, others, wasi};

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
    Checked, CheckedNoSignals, Interpreter, Liftoff, Native, Silverfir, SilverfirInterpreter, Ssa,
    TurboFan, Wasmi, Wasmtime, WasmtimeChecked, WasmtimeInliner, WasmtimeNoSignals,
    WasmtimeUnmasked,
};

const COMPILERS: &[Contender] =
    &[Ssa, Wasmtime, WasmtimeInliner, TurboFan, Liftoff, Silverfir, Native];

const INTERPRETERS: &[Contender] = &[Interpreter, Wasmi, SilverfirInterpreter];

/// All suites, in the order of their tables.
pub(crate) const ALL: [Suite; 11] = [
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
        contenders: COMPILERS,
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
        contenders: &[Ssa, Wasmtime, WasmtimeInliner, TurboFan, Liftoff],
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
    Suite {
        key: "interpreted-naive",
        title: "Interpreters: naive slot bytecode",
        about: "",
        programs: || kernels("naive"),
        contenders: INTERPRETERS,
    },
    Suite {
        key: "interpreted-O2",
        title: "Interpreters: kernels by clang -O2",
        about: "",
        programs: || kernels("O2"),
        contenders: INTERPRETERS,
    },
    Suite {
        key: "interpreted-O0",
        title: "Interpreters: kernels by clang -O0",
        about: "",
        programs: || kernels("O0"),
        contenders: INTERPRETERS,
    },
    Suite {
        key: "interpreted-wasi",
        title: "Interpreters: WASI programs by -O2",
        about: "",
        programs: wasi,
        contenders: &[Interpreter, Wasmi],
    },
    Suite {
        key: "other",
        title: "Other programs",
        about: "",
        programs: others,
        contenders: &[Ssa, Wasmtime, WasmtimeInliner],
    },
    Suite {
        key: "interpreted-other",
        title: "Interpreters: other programs",
        about: "",
        programs: others,
        contenders: &[Interpreter, Wasmi],
    },
];

impl Suite {
    /// Its engines, but for those that this machine has not got.
    pub(crate) fn engines(&self) -> Vec<Box<dyn Engine>> {
        contenders(self.contenders)
    }
}
