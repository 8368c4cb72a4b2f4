//! Inputs that could break the import: deep nesting, large functions, branches that drop many operands.
//! Each is translated or rejected with the name of a limit, and nothing recurses on it.

use slotvm_bytecode::{VerifiedModule, encode, verify, wasm};
use wasm_encoder::{BlockType, InstructionSink, Module};
use wasm_encoder::{CodeSection, Function, FunctionSection, TypeSection, ValType};

/// The largest size of a function body in bytes.
const BODY_BYTES_MAX: usize = 7_654_321;

/// Returns a module of one function with this body, a parameter of type `i32`, and `n_locals` more.
fn binary(n_locals: u32, body: impl FnOnce(&mut InstructionSink<'_>)) -> Vec<u8> {
    let mut types = TypeSection::new();
    types.ty().function([ValType::I32], []);
    let mut funcs = FunctionSection::new();
    funcs.function(0);
    let mut func = Function::new([(n_locals, ValType::I32)]);
    body(&mut func.instructions());
    func.instructions().end();
    let mut code = CodeSection::new();
    code.function(&func);
    let mut module = Module::new();
    module.section(&types).section(&funcs).section(&code);
    module.finish()
}

fn import(bytes: &[u8]) -> VerifiedModule {
    let module = wasm::import(bytes).unwrap_or_else(|error| panic!("{error}"));
    verify(module).unwrap_or_else(|error| panic!("{error}"))
}

fn n_labels(module: &VerifiedModule) -> usize {
    module.module().funcs[0].labels.len()
}

fn stack_max(module: &VerifiedModule) -> u32 {
    module.body(0).expect("the function is defined").stack_max
}

#[test]
fn a_million_nested_blocks() {
    const N: usize = 1_000_000;
    type Open = fn(&mut InstructionSink<'_>);
    let opens: [(Open, usize); 4] = [
        (
            |f| {
                f.block(BlockType::Empty);
            },
            0,
        ),
        (
            |f| {
                f.loop_(BlockType::Empty);
            },
            1,
        ),
        // All `if`s end at the same offset.
        (
            |f| {
                f.local_get(0).if_(BlockType::Empty);
            },
            1,
        ),
        (
            |f| {
                f.unreachable().block(BlockType::Empty);
            },
            0,
        ),
    ];
    for (open, expected) in opens {
        let bytes = binary(0, |f| {
            (0..N).for_each(|_| open(f));
            for _ in 0..N {
                f.end();
            }
        });
        assert_eq!(n_labels(&import(&bytes)), expected);
    }
}

#[test]
fn nested_blocks_with_an_operand_outside_each() {
    const N: u32 = 50_000;
    // A branch to each block; in the second round, one that drops an operand.
    for depth in [0, 1] {
        let bytes = binary(0, |f| {
            f.block(BlockType::Empty);
            for _ in 0..N {
                f.i32_const(1).block(BlockType::Empty).local_get(0).br_if(depth);
            }
            for _ in 0..N {
                f.end().drop();
            }
            f.end();
        });
        let module = import(&bytes);
        assert_eq!(stack_max(&module), N + 1);
        assert_eq!(module.module().shapes.len(), N as usize);
    }
}

#[test]
fn nested_ifs_with_both_arms() {
    const N: usize = 500_000;
    let bytes = binary(0, |f| {
        for _ in 0..N {
            f.local_get(0).if_(BlockType::Empty);
        }
        for _ in 0..N {
            f.else_().end();
        }
    });
    // The end of the first arm and the end of the `if` are at the same offset.
    assert_eq!(n_labels(&import(&bytes)), N);
    // A chain of `else if`, where all ends are at the same offset.
    let bytes = binary(0, |f| {
        for _ in 0..N {
            f.local_get(0).if_(BlockType::Empty).nop().else_();
        }
        for _ in 0..N {
            f.end();
        }
    });
    assert_eq!(n_labels(&import(&bytes)), N);
}

#[test]
fn the_most_locals() {
    let all = |f: &mut InstructionSink<'_>| {
        for local in 1..50_000 {
            f.local_get(local - 1).local_set(local);
        }
    };
    let module = import(&binary(49_999, all));
    assert_eq!(module.body(0).expect("it is defined").locals.len(), 50_000);
    let error = wasm::import(&binary(50_000, all)).expect_err("these are too many");
    assert!(error.to_string().contains("too many locals"), "{error}");
}

#[test]
fn the_largest_functions() {
    // Four bytes each: straight code, then a branch that drops an operand every five instructions.
    let straight = |n| {
        binary(0, move |f| {
            for _ in 0..n {
                f.local_get(0).drop().nop();
            }
        })
    };
    let module = import(&straight(BODY_BYTES_MAX / 4 - 1));
    assert_eq!(module.body(0).expect("it is defined").blocks.len(), 1);
    let error = wasm::import(&straight(BODY_BYTES_MAX / 4 + 1)).expect_err("it is too large");
    assert!(error.to_string().contains("body size count exceeds limit"), "{error}");
    let n = BODY_BYTES_MAX / 10 - 1;
    let module = import(&binary(0, |f| {
        f.block(BlockType::Result(ValType::I32));
        for _ in 0..n {
            f.i32_const(1).i32_const(2).local_get(0).br_if(0).drop().drop();
        }
        f.i32_const(3).end().drop();
    }));
    // All share one detour.
    assert_eq!(n_labels(&module), 2);
}

#[test]
fn the_largest_tables_of_branches() {
    let n = BODY_BYTES_MAX - 100;
    for operand in [false, true] {
        let module = import(&binary(0, |f| {
            f.block(BlockType::Empty).block(BlockType::Empty);
            if operand {
                f.i32_const(1);
            }
            f.local_get(0).br_table((0..n as u32).map(|i| i % 2), 1).end().end();
        }));
        // Each depth that drops the operand has one detour.
        assert_eq!(n_labels(&module), if operand { 4 } else { 1 });
    }
}

#[test]
fn tables_to_every_depth() {
    const N: u32 = 50_000;
    let module = import(&binary(0, |f| {
        for _ in 0..N {
            f.block(BlockType::Empty);
        }
        f.local_get(0).br_table(0..N, 0);
        for _ in 0..N {
            f.end().nop();
        }
    }));
    assert_eq!(n_labels(&module), 1);
    // Many tables inside many blocks: the cost of a table is the number of its targets, not its depth, and
    // targets that all of them name exist once.
    let module = import(&binary(0, |f| {
        for _ in 0..N {
            f.block(BlockType::Empty);
        }
        for _ in 0..N {
            f.block(BlockType::Empty).i32_const(1).local_get(0).br_table([1, N], 0).end();
        }
        for _ in 0..N {
            f.end();
        }
    }));
    assert_eq!(n_labels(&module), 2 * N as usize + 4);
}

/// Returns the size of the binary form of an imported WebAssembly module.
fn n_imported_bytes(bytes: &[u8]) -> usize {
    encode(import(bytes).module()).len()
}

/// Returns branches that keep operands above a dropped one: `n_branches` in a block with `n_results`
/// results, each with `more` additional operands compared with the previous one.
fn keeping(n_results: u32, n_branches: u32, more: u32) -> Vec<u8> {
    let mut types = TypeSection::new();
    types.ty().function([ValType::I32], []);
    types.ty().function([], vec![ValType::I32; n_results as usize]);
    let mut funcs = FunctionSection::new();
    funcs.function(0);
    let mut func = Function::new([]);
    let mut f = func.instructions();
    f.block(BlockType::FunctionType(1)).local_get(0);
    for _ in 0..n_results {
        f.local_get(0);
    }
    for _ in 0..n_branches {
        for _ in 0..more {
            f.local_get(0);
        }
        f.local_get(0).br_if(0);
    }
    f.unreachable().end();
    for _ in 0..n_results {
        f.drop();
    }
    f.end();
    let mut code = CodeSection::new();
    code.function(&func);
    let mut module = Module::new();
    module.section(&types).section(&funcs).section(&code);
    module.finish()
}

/// The size of the translated branches is linear in the input, however many operands they keep and drop.
#[test]
fn branches_that_keep_operands_take_room_in_proportion() {
    for (n_results, n_branches, more) in [
        (1_000, 1_100, 0),
        (1_000, 11_000, 0),
        (1_000, 5_000, 1),
        (300, 5_000, 0),
        (300, 1_000, 0),
        (1, 10_000, 3),
        (0, 10_000, 2),
    ] {
        let bytes = keeping(n_results, n_branches, more);
        let n_bytes = n_imported_bytes(&bytes);
        assert!(n_bytes < 5 * bytes.len(), "{} bytes became {n_bytes}", bytes.len());
        // Budgets count the bytes of the body, which is nearly the whole module.
        let n_source = import(&bytes).func(0).expect("it is defined").source_bytes as usize;
        let n_other = bytes.len() - n_source;
        assert!(n_other > 0 && n_other < n_results as usize + 50, "{n_source} of {}", bytes.len());
    }
    // A table of branches to `n` blocks, each with an operand outside: n²/2 operands are dropped.
    let n = 10_000;
    let bytes = binary(0, move |f| {
        for _ in 0..n {
            f.i32_const(1).block(BlockType::Empty);
        }
        f.local_get(0).br_table(0..n, 0);
        for _ in 0..n {
            f.end().drop();
        }
    });
    let n_bytes = n_imported_bytes(&bytes);
    assert!(n_bytes < 5 * bytes.len(), "{} bytes became {n_bytes}", bytes.len());
}

#[test]
fn deep_operand_stacks() {
    const N: usize = 1_000_000;
    let deep = |n| {
        binary(0, move |f| {
            for _ in 0..n {
                f.i32_const(1);
            }
            for _ in 0..n {
                f.drop();
            }
        })
    };
    assert_eq!(stack_max(&import(&deep(N))), N as u32);
    let error = verify(wasm::import(&deep(N + 1)).expect("it is valid")).expect_err("too deep");
    assert!(error.to_string().contains("STACK_OPERANDS_MAX"), "{error}");
}
