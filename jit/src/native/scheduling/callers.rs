//! Native code of what calls a hot function, in the place of native code of the function.
//!
//! A function that its callers inline needs no native code of its own, if theirs is worth it. So where a function becomes
//! hot, the loop or the function is looked at that calls it: if it would inline the function, and interpreting both has taken
//! as long as makes it hot, it is wanted instead, and what calls it in turn may be wanted instead of it. Until there is native
//! code of the caller, or there will be none, the function is put off. Afterwards it is counted anew: if it is called often
//! still, then from elsewhere.

use std::collections::HashMap;
use std::mem;
use std::sync::Mutex;

use slotvm_bytecode::{Inst, Op, VerifiedModule};
use slotvm_runtime::native::Part;
use slotvm_ssa::passes::inline::{Limits, is_small_enough};

/// The functions that are put off, each with what is wanted instead.
#[derive(Default)]
pub(super) struct Callers(Mutex<HashMap<u32, State>>);

/// What became of a function that was put off.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// It waits for native code of this part, or that there will be none.
    Waits(Part),
    /// It is put off no more.
    Ended,
}

impl Callers {
    /// What became of a function that was put off. If another thread is here, it is put off no more.
    pub(super) fn state(&self, func: u32) -> Option<State> {
        self.0.try_lock().map_or(Some(State::Ended), |states| states.get(&func).copied())
    }

    pub(super) fn set(&self, func: u32, state: State) {
        // Nobody waits. If another thread is here, there will be another time.
        if let Ok(mut states) = self.0.try_lock() {
            states.insert(func, state);
        }
    }
}

/// What native code is wanted of where a function is hot, given what waits for it, the innermost first: what calls it and
/// inlines it, or the function.
///
/// `enclosing` is the function of a loop if native code of that is wanted rather than of the loop. `is_worth` says whether
/// native code of the last one of some parts is worth what it costs, if it takes the place of all of them.
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

/// Whether a function is inlined into the last one of those that wait for it, by way of the others.
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

/// Whether a part calls a function directly.
fn calls(module: &VerifiedModule, part: Part, callee: u32) -> bool {
    let body = module.body(part.func()).expect("the module defines what was interpreted");
    let blocks = match part {
        Part::Func(_) => &body.blocks[..],
        Part::Loop(_, number) => {
            let blocks = &body.loops()[number as usize];
            &body.blocks[blocks.start as usize..blocks.end as usize]
        }
    };
    let mut insts = blocks.iter().flat_map(|block| module.insts(part.func(), block));
    insts.any(|(_, Inst { op, imm })| op == Op::Call && imm.low() == callee)
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
    fn nothing_is_wanted_that_does_not_call_the_function_directly() {
        assert_eq!(wanted(&[], |_| true), Part::Func(LEAF));
        assert_eq!(wanted(&[Part::Loop(MAIN, 0)], |_| true), Part::Func(LEAF));
        assert_eq!(wanted(&[Part::Func(LEAF), Part::Func(MIDDLE)], |_| true), Part::Func(LEAF));
    }
}
