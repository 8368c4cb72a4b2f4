//! The evaluator, which runs functions in the IR, one instruction at a time.
//!
//! It is the second oracle beside the interpreter, for slot form and SSA form and after any pass, so it is simple on
//! purpose. A [`Machine`] is self-contained: it has its own memory, globals, tables and segments, fuel, deterministic
//! call stack and frame stack. Instead of interruption by a host, it stops after a number of polls.
//!
//! It shares no code with the interpreter or with native code. What instructions compute (`numeric`), and how they
//! access memory (`memory`), is written from the specification a second time. What it shares is data, and what happens
//! before a program runs:
//! * the IR and its immediates, and with them all that the building of the IR, the verifier and passes have decided,
//!   such as charges of fuel and places of polls;
//! * of `slotvm_bytecode` the opcode table and the trap codes, the module as data, and the decoder, which reads
//!   constant expressions.
//!
//! A test holds the list of what is imported.
//!
//! Relies on functions that the verifier of the IR accepts ([`crate::ir::verify`]); others make it panic.
//!
//! It agrees with the other engines in these: results, traps and their places, memory, globals, tables, fuel,
//! and the deterministic call stack are equal to the bit, except NaNs without
//! [`Options::canonical_nans`]. It differs in these:
//! * A `funcref` is the index of the function plus one. Other engines have handles of records.
//! * Imported memories, tables and globals are made by the machine: memories and tables with their
//!   minimum size, globals from [`Imports::globals`].
//! * Host functions cannot call back.
//! * A value is its bits, of which there are up to 128. Other engines have cells.
//!
//! An exit goes on in a form that is entered at its block ([`Machine::land_in`]), which has no exits where tests ask for
//! the semantics of the bytecode.
//!
//! Phis are parallel: all operands of an edge are read before a parameter is written. There is no
//! recursion; calls push on a stack of frames.

mod instantiate;
mod landing;
mod memory;
mod numeric;
mod roots;
mod run;
mod segments;
mod state;

use std::fmt;

use slotvm_bytecode::{TrapCode, VerifiedModule, limits};

use crate::ir::Function;
pub use roots::Roots;
use state::Contents;
pub use state::Table;

/// Options of a machine.
#[derive(Clone, Debug)]
pub struct Options {
    /// The initial fuel. Without it nothing is charged.
    pub fuel: Option<u64>,
    /// Cells of the deterministic call stack. Without it `stack.push` takes nothing, and
    /// [`Options::frames_max`] and [`Options::values_max`] limit calls.
    pub stack_cells: Option<u64>,
    /// The number of polls after which the next one interrupts the program. Without it no poll does, and
    /// bulk operations do not poll.
    pub polls: Option<u64>,
    /// The maximum number of active guest frames, if the call stack is not deterministic.
    pub frames_max: usize,
    /// The maximum number of values in all active frames, if the call stack is not deterministic.
    pub values_max: usize,
    /// The maximum number of pages of the memory.
    pub memory_pages_max: u32,
    /// The maximum number of elements of a table.
    pub table_elems_max: u32,
    /// Whether results of floating-point arithmetic that are NaN become the canonical NaN.
    pub canonical_nans: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            fuel: None,
            stack_cells: None,
            polls: None,
            frames_max: 400_000,
            values_max: 16 << 20,
            memory_pages_max: limits::MEMORY_PAGES_MAX,
            table_elems_max: 10_000_000,
            canonical_nans: false,
        }
    }
}

/// A call of an imported function.
#[derive(Debug)]
pub struct HostCall<'a> {
    /// The function, in the module's index space.
    pub func: u32,
    /// The arguments, as bits.
    pub args: &'a [u128],
    /// The memory of the module; empty if it has none.
    pub memory: &'a mut [u8],
    /// The references into the embedder's heap.
    pub roots: Roots<'a>,
}

/// Runs imported functions. It returns the results as bits, or a trap, which then has the place of the
/// call.
pub type Host<'a> = Box<dyn FnMut(HostCall<'_>) -> Result<Vec<u128>, TrapCode> + 'a>;

/// The imports of a machine.
pub struct Imports<'a> {
    /// The imported functions.
    pub host: Host<'a>,
    /// The imported globals, as bits, in the order of their indices. Missing ones are 0.
    pub globals: Vec<u128>,
}

impl Default for Imports<'_> {
    /// Returns a host without globals, whose functions trap as `unreachable`.
    fn default() -> Self {
        Imports { host: Box::new(|_| Err(TrapCode::Unreachable)), globals: Vec::new() }
    }
}

impl fmt::Debug for Imports<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Imports").field("globals", &self.globals).finish_non_exhaustive()
    }
}

/// A trap: the program stopped before it returned.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Trap {
    /// The reason.
    pub code: TrapCode,
    /// The number of the instruction `trap`, if that has trapped.
    pub number: Option<u32>,
    /// The function, in the module's index space. With `offset`, 0 where there is no place: an
    /// active segment that does not fit, or an imported function that traps while no other is active.
    pub func: u32,
    /// The code offset of the instruction.
    pub offset: u32,
}

impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in f{} at offset {:#06x}", self.code, self.func, self.offset)
    }
}

impl std::error::Error for Trap {}

/// A module being run by evaluating the IR of its functions.
pub struct Machine<'a> {
    module: &'a VerifiedModule,
    /// The functions defined in the module.
    functions: Vec<Function>,
    /// The forms that go on after exits.
    landings: Vec<Function>,
    state: Contents<'a>,
}

impl<'a> Machine<'a> {
    /// Makes a machine whose memory, tables and globals have their first values. Then
    /// [`Machine::instantiate`] applies segments and runs the start function.
    ///
    /// # Panics
    /// Panics if `functions` are not those that the module defines, in their order.
    pub fn new(
        module: &'a VerifiedModule,
        functions: Vec<Function>,
        imports: Imports<'a>,
        options: Options,
    ) -> Machine<'a> {
        let expected = module.n_imported_funcs()..module.n_funcs();
        assert!(
            functions.iter().map(|f| f.func).eq(expected),
            "expected one function for each that the module defines"
        );
        let state = Contents::new(module, imports, options);
        Machine { module, functions, landings: Vec::new(), state }
    }

    /// Adds slot forms that are entered at the blocks of exits, or have noted what waits at the calls after which frames go on.
    /// An exit continues there, as native code continues in the interpreter.
    pub fn land_in(&mut self, landings: impl IntoIterator<Item = Function>) {
        self.landings.extend(landings);
    }

    /// Applies the active segments in their order, elements first, and runs the start function.
    ///
    /// # Errors
    /// Fails if a segment does not fit or the start function traps. Earlier writes stay.
    pub fn instantiate(&mut self) -> Result<(), Trap> {
        let no_place = |code| Trap { code, number: None, func: 0, offset: 0 };
        self.state.apply_segments(self.module).map_err(no_place)?;
        match self.module.module().start {
            Some(start) => self.call(start, &[]).map(drop),
            None => Ok(()),
        }
    }

    /// Calls a function of the module's index space. Arguments and results are bits.
    ///
    /// # Errors
    /// Returns the trap. Call stack and frame stack are then as before the call.
    ///
    /// # Panics
    /// Panics if no such function exists, or it takes another number of arguments.
    pub fn call(&mut self, func: u32, args: &[u128]) -> Result<Vec<u128>, Trap> {
        assert_eq!(args.len(), self.module.func_type(func).params.len(), "arguments fit the type");
        run::run(self.module, &self.functions, &self.landings, &mut self.state, func, args)
    }

    /// The functions, as they were given.
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// The memory; empty if the module has none.
    pub fn memory(&self) -> &[u8] {
        &self.state.memory
    }

    /// All globals, as bits.
    pub fn globals(&self) -> &[u128] {
        &self.state.globals
    }

    /// All tables.
    pub fn tables(&self) -> &[Table] {
        &self.state.tables
    }

    /// The fuel left, if there is a limit.
    pub fn fuel(&self) -> Option<u64> {
        self.state.fuel
    }

    /// Sets the fuel.
    pub fn set_fuel(&mut self, fuel: Option<u64>) {
        self.state.fuel = fuel;
    }

    /// The number of polls left before one interrupts the program, if there is a limit.
    pub fn polls(&self) -> Option<u64> {
        self.state.polls
    }

    /// Sets the number of polls before one interrupts the program.
    pub fn set_polls(&mut self, polls: Option<u64>) {
        self.state.polls = polls;
    }

    /// The cells left of the deterministic call stack, if there is one.
    pub fn stack_cells(&self) -> Option<u64> {
        self.state.stack_cells
    }

    /// The address of the lowest byte in use of the frame stack.
    pub fn frame_sp(&self) -> u32 {
        self.state.frame_sp
    }
}

impl fmt::Debug for Machine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine").field("fuel", &self.state.fuel).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
