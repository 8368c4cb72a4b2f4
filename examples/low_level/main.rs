//! The low-level API: a virtual machine that owns its heap has functions compiled, and calls them by
//! pointers of the C convention.
//!
//! ```text
//! cargo run --release --bin low_level
//! ```
//!
//! The machine was there before: its words are 64 bits, numbers or addresses of [`Cell`]s on its own
//! [`Heap`], and an [interpreter](interpret) runs its [instructions](Op). Native code is to work on the same
//! heap, and nothing of the machine is to change for it. So there is no store and no linear memory: the
//! [compiler](compile) writes bytecode that loads from host addresses, imports the machine's allocator as a C
//! function, and gets a C function for each program.
//!
//! It is `unsafe` for the same reason as the interpreter: words have no types, so whoever writes a
//! program answers for it that heads and tails are taken of lists only.

use std::process::ExitCode;
use std::ptr;
use std::time::{Duration, Instant};

use slotvm::raw::{Code, Compiler, Context};
use slotvm::{Engine, Error};

/// An element of a list.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Cell {
    /// A word.
    head: i64,
    /// The address of the rest of the list, 0 for its end.
    tail: i64,
}

/// The machine's memory, which grows until it is full.
struct Heap {
    /// All that there ever are, so they stay where they are.
    cells: Vec<Cell>,
    n_used: usize,
}

impl Heap {
    fn new(n_cells: usize) -> Heap {
        Heap { cells: vec![Cell { head: 0, tail: 0 }; n_cells], n_used: 0 }
    }

    /// Makes a list of a word and another list. There is none if the heap is full.
    fn cons(&mut self, head: i64, tail: i64) -> Option<i64> {
        if self.n_used == self.cells.len() {
            return None;
        }
        // By the vector's pointer, so that those to other cells stay valid.
        let cell = self.cells.as_mut_ptr().wrapping_add(self.n_used);
        // SAFETY: the cell is one of the heap.
        unsafe { cell.write(Cell { head, tail }) };
        self.n_used += 1;
        Some(cell.expose_provenance() as i64)
    }
}

/// An instruction of the machine, which takes its operands from a stack. Jumps are taken with an empty one.
#[derive(Clone, Copy, Debug)]
enum Op {
    /// Pushes a number.
    Const(i64),
    /// Pushes a local.
    Get(usize),
    /// Pops a local.
    Set(usize),
    /// Adds two words.
    Add,
    /// Replaces a list by its head.
    Head,
    /// Replaces a list by its tail.
    Tail,
    /// Makes a list of a head and a tail.
    Cons,
    /// Goes elsewhere.
    Jump(usize),
    /// Goes elsewhere if the word is 0.
    JumpIfZero(usize),
    /// Ends with a word.
    Return,
}

/// The locals of each program; the first is its parameter, the others are 0.
const N_LOCALS: usize = 2;

/// A list of the numbers from 1 to the parameter.
const NUMBERS: &[Op] = &[
    Op::Get(0),
    Op::JumpIfZero(11),
    Op::Get(0),
    Op::Get(1),
    Op::Cons,
    Op::Set(1),
    Op::Get(0),
    Op::Const(-1),
    Op::Add,
    Op::Set(0),
    Op::Jump(0),
    Op::Get(1),
    Op::Return,
];

/// The sum of a list.
const SUM: &[Op] = &[
    Op::Get(0),
    Op::JumpIfZero(11),
    Op::Get(0),
    Op::Head,
    Op::Get(1),
    Op::Add,
    Op::Set(1),
    Op::Get(0),
    Op::Tail,
    Op::Set(0),
    Op::Jump(0),
    Op::Get(1),
    Op::Return,
];

/// Runs a program as the machine always did. Returns nothing if the heap is full.
///
/// # Safety
/// Heads and tails are taken of lists on a heap that exists.
unsafe fn interpret(program: &[Op], heap: &mut Heap, parameter: i64) -> Option<i64> {
    const BALANCED: &str = "a program pushes what it pops";
    let mut locals = [0; N_LOCALS];
    locals[0] = parameter;
    let mut stack: Vec<i64> = Vec::new();
    // SAFETY: the caller's promise.
    let cell =
        |address: i64| unsafe { ptr::with_exposed_provenance::<Cell>(address as usize).read() };
    let mut pc = 0;
    loop {
        let op = program[pc];
        pc += 1;
        let mut pop = || stack.pop().expect(BALANCED);
        let result = match op {
            Op::Const(n) => n,
            Op::Get(local) => locals[local],
            Op::Add => pop().wrapping_add(pop()),
            Op::Head => cell(pop()).head,
            Op::Tail => cell(pop()).tail,
            Op::Cons => {
                let tail = pop();
                heap.cons(pop(), tail)?
            }
            Op::Set(local) => {
                locals[local] = pop();
                continue;
            }
            Op::Jump(target) => {
                pc = target;
                continue;
            }
            Op::JumpIfZero(target) => {
                if pop() == 0 {
                    pc = target;
                }
                continue;
            }
            Op::Return => return Some(pop()),
        };
        stack.push(result);
    }
}

/// Functions that each program may call. `load` becomes a load instruction.
const IMPORTS: &str = r#"
    import "host" "i64.load" func load(i64) -> i64
    import "machine" "cons" func cons(i64, i64) -> i64
"#;

/// Writes a program as bytecode of slotvm.
fn translate(program: &[Op]) -> String {
    let locals: Vec<String> = (1..N_LOCALS).map(|local| format!("local l{local}: i64 ")).collect();
    let mut code = format!(
        "{IMPORTS} export \"run\" func run\n func run(l0: i64) -> i64 {{ {}\n",
        locals.concat()
    );
    let targets: Vec<usize> = program
        .iter()
        .filter_map(|op| match op {
            Op::Jump(target) | Op::JumpIfZero(target) => Some(*target),
            _ => None,
        })
        .collect();
    for (pc, op) in program.iter().enumerate() {
        if targets.contains(&pc) {
            code += &format!("at{pc}:\n");
        }
        code += &match op {
            Op::Const(n) => format!("i64.const {n}"),
            Op::Get(local) => format!("local.get l{local}"),
            Op::Set(local) => format!("local.set l{local}"),
            Op::Add => "i64.add".to_owned(),
            Op::Head => "call load".to_owned(),
            Op::Tail => format!("i64.const {} i64.add call load", std::mem::offset_of!(Cell, tail)),
            Op::Cons => "call cons".to_owned(),
            Op::Jump(target) => format!("br at{target}"),
            Op::JumpIfZero(target) => format!("i64.eqz br_if at{target}"),
            Op::Return => "return".to_owned(),
        };
        code += "\n";
    }
    code + "}"
}

/// The allocator as a C function. The heap is the user pointer of the context.
///
/// # Safety
/// The context is that of the function that calls, and its user pointer is to a [`Heap`].
unsafe extern "C" fn cons(context: *mut Context, head: i64, tail: i64) -> i64 {
    // SAFETY: the caller's promise.
    let (context, heap) = unsafe { (&mut *context, &mut *(*context).user().cast::<Heap>()) };
    heap.cons(head, tail).unwrap_or_else(|| {
        context.fail(Error::host("the heap is full"));
        0
    })
}

/// A program as native code.
struct Compiled {
    /// Keeps the function alive.
    _code: Code,
    run: unsafe extern "C" fn(*mut Context, i64) -> i64,
}

fn compile(engine: &Engine, program: &[Op]) -> Result<Compiled, Error> {
    let mut compiler = Compiler::new(engine)?;
    // SAFETY: `Compiled::run` is unsafe, too, and asks for what the program and the allocator rely on.
    unsafe {
        compiler.allow_host_addresses();
        compiler.define("machine", "cons", cons as unsafe extern "C" fn(_, _, _) -> _);
    }
    let code = compiler.compile_text(&translate(program))?;
    Ok(Compiled { run: code.get("run")?, _code: code })
}

impl Compiled {
    /// Runs the program.
    ///
    /// # Safety
    /// As for [`interpret`].
    unsafe fn run(&self, context: &mut Context, heap: &mut Heap, word: i64) -> Result<i64, Error> {
        context.set_user(ptr::from_mut(heap).cast());
        // SAFETY: the code lives, the context is that of this call, and has a heap.
        let result = unsafe { (self.run)(context, word) };
        context.check()?;
        Ok(result)
    }
}

/// Sums a list by the interpreter, and the same list by native code. Returns both sums and times.
fn compare(n: i64) -> Result<[(i64, Duration); 2], Error> {
    let engine = Engine::default();
    let (numbers, sum) = (compile(&engine, NUMBERS)?, compile(&engine, SUM)?);
    let mut context = Context::new(&engine);
    let mut heap = Heap::new(n as usize);
    // SAFETY: the parameter of `SUM` is the list that `NUMBERS` makes.
    unsafe {
        let list = numbers.run(&mut context, &mut heap, n)?;
        let start = Instant::now();
        let interpreted = interpret(SUM, &mut heap, list).expect("a sum needs no heap");
        let between = Instant::now();
        let compiled = sum.run(&mut context, &mut heap, list)?;
        Ok([(interpreted, between - start), (compiled, between.elapsed())])
    }
}

fn main() -> ExitCode {
    const N: i64 = 1_000_000;
    match compare(N) {
        Ok(sums) => {
            println!("The sum of a list of {N} numbers");
            for (who, (sum, time)) in ["interpreted", "compiled"].iter().zip(sums) {
                println!("{who:>12}: {sum} in {time:.1?}");
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_sum_the_same_list() {
        for n in [0, 1, 1000] {
            let sums = compare(n).unwrap().map(|(sum, _)| sum);
            assert_eq!(sums, [n * (n + 1) / 2; 2]);
        }
    }

    #[test]
    fn lists_are_made_on_one_heap_by_both() {
        let engine = Engine::default();
        let numbers = compile(&engine, NUMBERS).unwrap();
        let mut context = Context::new(&engine);
        let mut heap = Heap::new(30);
        // SAFETY: `SUM` gets lists.
        unsafe {
            let first = numbers.run(&mut context, &mut heap, 10).unwrap();
            let second = interpret(NUMBERS, &mut heap, 19).unwrap();
            assert_eq!(interpret(SUM, &mut heap, first), Some(55));
            assert_eq!(interpret(SUM, &mut heap, second), Some(190));
            assert_eq!(heap.n_used, 29);
            // There is room for one more.
            let error = numbers.run(&mut context, &mut heap, 2).unwrap_err();
            assert_eq!(error.to_string(), "the heap is full");
            assert_eq!(interpret(NUMBERS, &mut heap, 2), None);
        }
    }
}
