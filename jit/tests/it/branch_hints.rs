//! Branch hints: the code of a side that rarely runs stands after all other code, and results never change.

use crate::support::{for_all, instance_with};

/// A sum of numbers of which each eighth also goes round a loop of its own, and results of it for some arguments.
fn sum(hint: &str) -> String {
    format!(
        "memory m 1
        export \"f\" func f
        func f(n: i32) -> i32 {{
          local sum: i32, i: i32
        again:
          local.get n  i32.const 7  i32.and  {hint} br_if next
          i32.const 0  local.get n  i32.store 1001
          local.get n  local.set i
        inner:
          local.get i  i32.const 3  i32.and  br_if skip
          i32.const 0  local.get i  i32.store 1002
        skip:
          i32.const 0  local.get i  i32.store 1003
          local.get i  i32.const 1  i32.sub  local.tee i  i32.const 0  i32.gt_s  br_if inner
          local.get sum  i32.const 100  i32.add  local.set sum
        next:
          i32.const 0  local.get sum  i32.store 1
          local.get sum  local.get n  i32.add  local.set sum
          local.get n  i32.const 1  i32.sub  local.tee n  br_if again
          i32.const 0  local.get sum  i32.store 2
          local.get sum  return
        }}"
    )
}

#[test]
fn results_are_the_same_with_and_without_hints_and_with_wrong_ones() {
    let expected = |n: i32| (1..=n).sum::<i32>() + n / 8 * 100;
    for hint in ["", ".likely", ".unlikely"] {
        for_all(|engine| {
            let linker = slotvm::Linker::<()>::new(engine);
            let (mut store, instance) = instance_with(engine, &sum(hint), &linker, ());
            let f = instance.get_typed_func::<i32, i32>(&store, "f").unwrap();
            for n in [1, 7, 8, 9, 100, 1_000] {
                assert_eq!(f.call(&mut store, n).unwrap(), expected(n), "{hint}");
            }
        });
    }
}

#[cfg(feature = "jit")]
mod layout {
    use slotvm::compiler::BytecodePlace;
    use slotvm::{Config, Engine, Module, SlotMode, Tier};
    use slotvm_bytecode::{CodeReader, Op};

    use super::sum;
    use crate::support::module;

    /// An engine whose code is all native, from the start.
    fn engine(slots: SlotMode) -> Engine {
        Engine::new(Config::new().tier(Tier::Jit).slots(slots)).unwrap()
    }

    /// The offsets in memory of the `i32.store`s of a function, wherever they are inlined, in the order of the machine code.
    fn stores(module: &Module, func: u32) -> Vec<u32> {
        let code = module.machine_code(func).unwrap().unwrap();
        let store_at = |&BytecodePlace { func, offset }: &BytecodePlace| {
            let body = &module.verified().func(func).unwrap().code;
            let inst = CodeReader::new(body, offset).read().unwrap();
            (inst.op == Op::I32Store).then(|| inst.imm.offset())
        };
        let all = code.ranges.iter().filter_map(|range| store_at(&range.places[0]));
        // What an address needs may be computed before; the store itself comes last.
        let mut found: Vec<u32> = Vec::new();
        for store in all {
            found.retain(|&known| known != store);
            found.push(store);
        }
        found
    }

    fn stores_of(source: &str, slots: SlotMode) -> Vec<u32> {
        stores(&module(&engine(slots), source), 0)
    }

    #[test]
    fn the_unlikely_side_of_a_branch_in_a_loop_stands_after_all_other_code() {
        for slots in SlotMode::ALL {
            assert_eq!(stores_of(&sum(""), slots), [1001, 1002, 1003, 1, 2], "{slots}");
            assert_eq!(stores_of(&sum(".likely"), slots), [1, 2, 1001, 1002, 1003], "{slots}");
            // The other side is entered by both.
            assert_eq!(stores_of(&sum(".unlikely"), slots), [1001, 1002, 1003, 1, 2], "{slots}");
        }
    }

    #[test]
    fn both_sides_may_be_the_unlikely_one() {
        let source = |hint: &str| {
            format!(
                "memory m 1
                func f(n: i32) -> i32 {{
                  local.get n {hint} br_if taken
                  i32.const 0 i32.const 0 i32.store 1
                  i32.const 1 return
                taken:
                  i32.const 0 i32.const 0 i32.store 2
                  local.get n i32.const 5 i32.eq br_if inner
                  i32.const 0 i32.const 0 i32.store 3
                  i32.const 3 return
                inner:
                  i32.const 0 i32.const 0 i32.store 4
                  i32.const 4 return
                }}"
            )
        };
        for slots in [SlotMode::Ssa, SlotMode::Memory] {
            let found = stores_of(&source(".unlikely"), slots);
            assert_eq!((found[0], found.len()), (1, 4), "{slots}: {found:?}");
            let found = stores_of(&source(".likely"), slots);
            assert_eq!((found[3], found.len()), (1, 4), "{slots}: {found:?}");
        }
    }

    #[test]
    fn an_edge_to_a_block_that_others_enter_has_its_moves_aside() {
        let source = |hint: &str| {
            format!(
                "func f(n: i64) -> i64 {{
                  local a: i64, b: i64
                again:
                  local.get n i64.const 3 i64.rotl local.set a
                  local.get n i64.const 5 i64.rotl local.set b
                  local.get a local.get b i64.lt_u {hint} br_if out
                  local.get a i64.const 7 i64.mul local.set b
                  local.get n i64.const 1 i64.sub local.tee n i64.eqz i32.eqz br_if again
                out:
                  local.get a local.get b i64.div_u return
                }}"
            )
        };
        let n_cold = |hint| {
            let module = module(&engine(SlotMode::Ssa), &source(hint));
            module.clif(0).unwrap().unwrap().matches(" cold:").count()
        };
        // With the opposite hint, the rest of the loop is cold.
        assert_eq!([n_cold(""), n_cold(".unlikely"), n_cold(".likely")], [0, 1, 1]);
    }

    /// A loop with a test at its end and one in the middle, whose exits are unlikely or not, and code after it.
    fn with_exits(in_middle: &str, at_end: &str, trap: bool) -> String {
        let early = if trap {
            "unreachable"
        } else {
            "i32.const 0 i32.const 0 i32.store 9 i32.const 0 return"
        };
        format!(
            "memory m 1
            func f(n: i32) -> i32 {{
            again:
              i32.const 0 local.get n i32.store 1
              local.get n i32.const 77 i32.eq {in_middle} br_if early
              i32.const 0 local.get n i32.store 2
              local.get n i32.const 1 i32.sub local.tee n {at_end} br_if again
              i32.const 0 i32.const 0 i32.store 3
              br end
            early:
              {early}
            end:
              i32.const 1 return
            }}"
        )
    }

    #[test]
    fn an_unlikely_exit_of_a_loop_is_cold_if_the_loop_has_another() {
        let cold = |source: &str| {
            let module = module(&engine(SlotMode::Ssa), source);
            let clif = module.clif(0).unwrap().unwrap();
            (stores(&module, 0), clif.matches(" cold:").count())
        };
        // The trap is cold, and nothing else.
        assert_eq!(cold(&with_exits("", ".likely", true)), (vec![1, 2, 3], 1));
        assert_eq!(cold(&with_exits(".unlikely", "", false)), (vec![1, 2, 3, 9], 1));
        assert_eq!(cold(&with_exits("", ".likely", false)).0, [1, 2, 9, 3]);
        // None of them is usual.
        assert_eq!(cold(&with_exits(".unlikely", ".likely", false)).1, 0);
    }

    /// A loop in a loop, whose likely branch back leaves only one usual exit: the other one is on an unlikely side.
    #[test]
    fn what_follows_an_inner_loop_is_not_cold() {
        let source = "memory m 1
            func f(n: i32) -> i32 {
              local i: i32
            outer:
              local.get n local.set i
            inner:
              local.get i i32.const 77 i32.ne .likely br_if usual
              i32.const 0 local.get i i32.store 9
              local.get n i32.const 5 i32.eq br_if after
            usual:
              i32.const 0 local.get i i32.store 1
              local.get i i32.const 1 i32.sub local.tee i .likely br_if inner
              i32.const 0 local.get n i32.store 2
            after:
              i32.const 0 local.get n i32.store 3
              local.get n i32.const 1 i32.sub local.tee n br_if outer
              local.get n return
            }";
        for slots in [SlotMode::Ssa, SlotMode::Memory] {
            assert_eq!(stores_of(source, slots), [1, 2, 3, 9], "{slots}");
        }
    }

    #[test]
    fn hints_of_functions_that_are_inlined_hold_in_their_callers() {
        let source = |hint: &str| {
            format!(
                "memory m 1
                func g(n: i32) -> i32 {{
                  local.get n i32.const 63 i32.and {hint} br_if usual
                  i32.const 0 local.get n i32.store 1
                usual:
                  local.get n i32.const 3 i32.mul return
                }}
                func f(n: i32) -> i32 {{
                  local sum: i32
                again:
                  local.get n call g local.get sum i32.add local.set sum
                  i32.const 0 local.get sum i32.store 2
                  local.get n i32.const 1 i32.sub local.tee n br_if again
                  local.get sum return
                }}"
            )
        };
        let of_f = |hint| stores(&module(&engine(SlotMode::Ssa), &source(hint)), 1);
        assert_eq!([of_f(""), of_f(".likely")], [[1, 2], [2, 1]]);
    }

    /// A loop that tests at its top with a copy of the test at its end, and an unlikely side in it.
    #[test]
    fn a_rotated_loop_keeps_its_hints() {
        let source = |hint: &str| {
            format!(
                "memory m 1
                func f(n: i32) -> i32 {{
                again:
                  local.get n i32.eqz br_if done
                  local.get n i32.const 63 i32.and {hint} br_if usual
                  i32.const 0 local.get n i32.store 1
                usual:
                  i32.const 0 local.get n i32.store 2
                  local.get n i32.const 1 i32.sub local.set n
                  br again
                done:
                  local.get n return
                }}"
            )
        };
        for slots in SlotMode::ALL {
            assert_eq!(stores_of(&source(".likely"), slots), [2, 1], "{slots}");
        }
    }

    #[test]
    fn a_loop_on_the_unlikely_side_is_not_the_one_that_is_aligned() {
        let source = |hint: &str| {
            format!(
                "memory m 1
                func f(n: i32) -> i32 {{
                  local i: i32
                again:
                  local.get n i32.const 63 i32.and {hint} br_if usual
                rare:
                  i32.const 0 local.get i i32.store 1
                  local.get i i32.const 1 i32.sub local.tee i br_if rare
                usual:
                  i32.const 0 local.get n i32.store 2
                  local.get n i32.const 1 i32.sub local.tee n br_if again
                  local.get n return
                }}"
            )
        };
        // Where code is placed, the hot loop starts at a line of the cache of instructions.
        let is_aligned = |hint: &str, store: u32| {
            let module = module(&engine(SlotMode::Ssa), &source(hint));
            let code = module.machine_code(0).unwrap().unwrap();
            let clif = module.clif(0).unwrap().unwrap();
            assert_eq!(clif.matches(" cold:").count() > 0, !hint.is_empty());
            let at = code.ranges.iter().find(|range| {
                let body = &module.verified().func(0).unwrap().code;
                let inst = CodeReader::new(body, range.places[0].offset).read().unwrap();
                inst.op == Op::I32Store && inst.imm.offset() == store
            });
            let start = code.module_offset.unwrap() + u64::from(at.unwrap().code.start);
            start % 64
        };
        // The store is a few instructions behind the head of its loop.
        assert!(is_aligned("", 1) < 16 && is_aligned(".likely", 2) < 32);
    }

    #[cfg(feature = "wasm")]
    #[test]
    fn hints_of_webassembly_move_code() {
        /// A function with a loop, in which an `if` stores at 1; it stores at 2 in each round.
        const CODE: &[u8] = &[
            0, // no locals
            0x03, 0x40, // loop
            0x20, 0, // local.get 0
            0x41, 7, 0x71, 0x45, // i32.const 7, i32.and, i32.eqz
            0x04, 0x40, // if, at offset 9
            0x41, 0, 0x41, 0, 0x36, 2, 1,    // i32.const 0, i32.const 0, i32.store 1
            0x0b, // end
            0x41, 0, 0x41, 0, 0x36, 2, 2, // i32.const 0, i32.const 0, i32.store 2
            0x20, 0, 0x41, 1, 0x6b, 0x22, 0, // local.get 0, i32.const 1, i32.sub, local.tee 0
            0x0d, 0, // br_if 0
            0x0b, 0x0b, // end, end
        ];
        const IF: u8 = 9;
        assert_eq!(CODE[IF as usize], 0x04);
        let section = |id: u8, contents: &[u8]| [&[id, contents.len() as u8], contents].concat();
        let module = |taken: Option<u8>| {
            let name = b"metadata.code.branch_hint";
            let hint = taken.map(|taken| {
                let hints = [1, 0, 1, IF, 1, taken];
                section(0, &[&[name.len() as u8], &name[..], &hints].concat())
            });
            let bytes = [
                b"\0asm\x01\0\0\0".to_vec(),
                section(1, &[1, 0x60, 1, 0x7f, 0]),
                section(3, &[1, 0]),
                section(5, &[1, 0, 1]),
                hint.unwrap_or_default(),
                section(10, &[&[1, CODE.len() as u8], CODE].concat()),
            ];
            Module::new(&engine(SlotMode::Ssa), bytes.concat()).unwrap()
        };
        let order = |taken| stores(&module(taken), 0);
        assert_eq!([order(None), order(Some(1)), order(Some(0))], [[1, 2], [1, 2], [2, 1]]);
    }
}
