//! Compiling the caller of a hot function instead of the function.
//!
//! A function that its callers inline needs no native code of its own. So when a function becomes hot, this looks at the
//! loops and functions that wait for it in the interpreter. If one of them would inline the function, and is worth its
//! compilation, it is compiled instead. The function then waits until there is native code of the caller, or until it is
//! known that there will be none. Its calls are counted on: if it becomes hot again, others call it, and it is compiled.
//!
//! Each function is looked at once, and costs at most a few times [`CALLER_INSTS_MAX`].

use std::collections::HashMap;
use std::mem;
use std::sync::Mutex;

use slotvm_bytecode::{Inst, Op, VerifiedModule};
use slotvm_runtime::native::Part;
use slotvm_ssa::passes::inline::{Limits, is_small_enough};

/// The instructions of a caller among which calls of a hot function are looked for, at most.
const CALLER_INSTS_MAX: usize = 1 << 14;

/// The functions that were hot, each with its state.
#[derive(Default)]
pub(super) struct Callers(Mutex<HashMap<u32, State>>);

/// The state of a function that was hot.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// It waits for the compilation of a caller.
    Waits(Part),
    /// It is compiled itself.
    Ready,
}

impl Callers {
    /// The state of a function, or `None` if it was not hot before. A function does not wait while another thread has the
    /// lock.
    pub(super) fn state(&self, func: u32) -> Option<State> {
        self.0.try_lock().map_or(Some(State::Ready), |states| states.get(&func).copied())
    }

    /// Sets the state of a function, unless another thread has the lock: then the function is looked at again when it is
    /// hot the next time.
    pub(super) fn set(&self, func: u32, state: State) {
        if let Ok(mut states) = self.0.try_lock() {
            states.insert(func, state);
        }
    }
}

/// Returns the part to compile when a function is hot: a caller that inlines it, or the function.
///
/// `callers` are the parts that wait for the function, the innermost first. `enclosing` maps a loop to its function where
/// that is to be compiled rather than the loop. `is_worth` is given a chain of callers, of which the last one inlines all
/// others, and says whether compiling that one pays.
pub(super) fn instead(
    module: &VerifiedModule,
    hot: u32,
    callers: &mut dyn Iterator<Item = Part>,
    enclosing: impl Fn(Part) -> Part,
    mut is_worth: impl FnMut(&[Part]) -> bool,
) -> Part {
    let callers: Vec<Part> = callers.take(Limits::NESTED_CALLS_MAX as usize).collect();
    let (mut wanted, mut outer) = (Part::Func(hot), &callers[..]);
    while let Part::Func(callee) = wanted {
        // What is called in a loop is inlined more readily, by however many calls.
        let to_loop = outer.iter().position(|caller| matches!(caller, Part::Loop(..)));
        let chains = [to_loop.map_or(0, |at| at + 1), outer.len().min(1)];
        let mut chains = chains.into_iter().map(|n| outer.split_at(n));
        let Some((chain, rest)) = chains.find(|(chain, _)| is_inlined(module, callee, chain))
        else {
            break;
        };
        if !is_worth(chain) {
            break;
        }
        wanted = enclosing(chain[chain.len() - 1]);
        outer = rest;
    }
    wanted
}

/// Whether a function is inlined into the last caller of a chain, by way of the others.
fn is_inlined(module: &VerifiedModule, mut callee: u32, chain: &[Part]) -> bool {
    let is_in_loop = matches!(chain.last(), Some(Part::Loop(..)));
    !chain.is_empty()
        && chain.iter().all(|&caller| {
            let callee = mem::replace(&mut callee, caller.func());
            caller.func() != callee
                && is_small_enough(module, callee, is_in_loop)
                && calls(module, caller, callee)
        })
}

/// Whether a part calls a function directly, as far as its first [`CALLER_INSTS_MAX`] instructions show.
fn calls(module: &VerifiedModule, part: Part, callee: u32) -> bool {
    let body = module.body(part.func()).expect("the module defines what was interpreted");
    let blocks = match part {
        Part::Func(_) => &body.blocks[..],
        Part::Loop(_, number) => {
            let blocks = &body.loops()[number as usize];
            &body.blocks[blocks.start as usize..blocks.end as usize]
        }
    };
    let insts = blocks.iter().flat_map(|block| module.insts(part.func(), block));
    insts.take(CALLER_INSTS_MAX).any(|(_, Inst { op, imm })| op == Op::Call && imm.low() == callee)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `leaf` is called by `middle`, that by `main` in a loop and behind it, and by `large`.
    fn module() -> VerifiedModule {
        let nothing = "local.get n  i64.const 3  i64.rotl  local.set n\n".repeat(200);
        let source = format!(
            r#"
            func leaf(n: i64) -> i64 {{
                local.get n  i64.const 1  i64.add  return
            }}
            func middle(n: i64) -> i64 {{
                local.get n  call leaf  i64.const 3  i64.mul  return
            }}
            func main(n: i64) -> i64 {{
              again:
                local.get n  call middle  local.tee n
                i64.const 1000  i64.lt_s  br_if again
                local.get n  call middle  return
            }}
            func large(n: i64) -> i64 {{
                {nothing}
                local.get n  call middle  return
            }}"#
        );
        let module = slotvm_bytecode::text::parse(&source).unwrap();
        slotvm_bytecode::verify(module).unwrap()
    }

    const LEAF: u32 = 0;
    const MIDDLE: u32 = 1;
    const MAIN: u32 = 2;
    const LARGE: u32 = 3;

    fn wanted(callers: &[Part], is_worth: impl FnMut(&[Part]) -> bool) -> Part {
        let callers = &mut callers.iter().copied();
        instead(&module(), LEAF, callers, |part| part, is_worth)
    }

    #[test]
    fn the_loop_is_wanted_that_calls_a_function_by_way_of_others() {
        let callers = [Part::Func(MIDDLE), Part::Loop(MAIN, 0)];
        assert_eq!(wanted(&callers, |_| true), Part::Loop(MAIN, 0));
        let mut chains = Vec::new();
        let refused = |chain: &[Part]| {
            chains.push(chain.to_vec());
            false
        };
        assert_eq!(wanted(&callers, refused), Part::Func(LEAF));
        assert_eq!(chains, [callers]);
    }

    #[test]
    fn a_caller_without_a_loop_is_wanted_if_the_function_is_small() {
        let callers = [Part::Func(MIDDLE), Part::Func(MAIN)];
        assert_eq!(wanted(&callers, |_| true), Part::Func(MAIN));
        let callers = [Part::Func(MIDDLE), Part::Func(LARGE), Part::Loop(MAIN, 0)];
        assert_eq!(wanted(&callers, |_| true), Part::Func(LARGE), "that is not inlined");
    }

    #[test]
    fn calls_far_from_the_start_of_a_large_caller_are_not_seen() {
        let far = "local.get n  i64.const 3  i64.rotl  local.set n\n".repeat(CALLER_INSTS_MAX / 4);
        for (before, is_seen) in [("", true), (far.as_str(), false)] {
            let source = format!(
                "func leaf() {{ return }}
                func caller(n: i64) {{ {before} call leaf  return }}"
            );
            let module = slotvm_bytecode::text::parse(&source).unwrap();
            let module = slotvm_bytecode::verify(module).unwrap();
            assert_eq!(calls(&module, Part::Func(1), 0), is_seen);
        }
    }

    #[test]
    fn nothing_is_wanted_that_does_not_call_the_function_directly() {
        assert_eq!(wanted(&[], |_| true), Part::Func(LEAF));
        assert_eq!(wanted(&[Part::Loop(MAIN, 0)], |_| true), Part::Func(LEAF));
        assert_eq!(wanted(&[Part::Func(LEAF), Part::Func(MIDDLE)], |_| true), Part::Func(LEAF));
    }
}
