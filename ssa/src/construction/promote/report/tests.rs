use super::*;
use crate::construction::build::BuildOptions;
use crate::construction::promote::promote;
use crate::tools::samples::{module, slot_form};

/// The path of a local to values, or why it has none.
type Outcome = Result<SlotPath, (Op, EscapeReason)>;

/// Locals that take each path to values, and one for each reason not to.
const SOURCE: &str = "memory mem 1
    frame_stack 1024 256
    func set(p: i32) { local.get p  i32.const 42  i32.store  return }
    func main(n: i32) -> i32 {
        local dead: i32, here: i32, one: i32, zero: i32, acc: i32
        local passed: i32, wide: i64, far: i32, stored: i32, kept: i32
        i32.const 1  local.set dead
        i32.const 2  local.set one
        i32.const 3  local.set here  local.get here  drop
        local.addr passed  call set
        local.addr wide  i32.load  local.set acc
        local.addr far  i32.load 4  drop
        local.addr passed  local.addr stored  i32.store
        local.addr kept
        br next
      next(i32):
        drop
        i32.const 5
      loop(i32):
        local.get acc  local.get one  i32.add  local.get zero  i32.add  local.set acc
        i32.const 1  i32.sub  dup  br_if loop
        drop
        local.get acc  local.get n  i32.add
        return
    }";

#[test]
fn each_local_has_its_path_or_its_reason() {
    let module = module(SOURCE);
    let mut f = slot_form(&module, 1, &BuildOptions::default());
    let mut scratch = Scratch::default();
    let report = promote(&mut f, &mut scratch);
    let locals = locals(&f, &module, &report, &scratch);
    let code = &module.func(1).expect("it is defined").code;
    let fates = locals.iter().map(|local| match local.fate {
        Fate::Promoted(path) => (local.origin, Ok(path)),
        Fate::Escapes { at, by, reason } => {
            assert_eq!(CodeReader::new(code, at).read().expect("an instruction").op, by);
            (local.origin, Err((by, reason)))
        }
        fate @ (Fate::Left(_) | Fate::Kept { .. }) => panic!("{fate}"),
    });
    let mut expected: Vec<(SlotOrigin, Outcome)> = [
        Ok(SlotPath::OneWriter),
        Ok(SlotPath::Dead),
        Ok(SlotPath::SingleBlock),
        Ok(SlotPath::OneWriter),
        Ok(SlotPath::Unwritten),
        Ok(SlotPath::Placed),
        Err((Op::Call, EscapeReason::Consumed)),
        Err((Op::I32Load, EscapeReason::OtherType)),
        Err((Op::I32Load, EscapeReason::Offset)),
        Err((Op::I32Store, EscapeReason::Stored)),
        Err((Op::Br, EscapeReason::LeavesBlock)),
    ]
    .into_iter()
    .zip(0..)
    .map(|(fate, i)| (SlotOrigin::Local(i), fate))
    .collect();
    expected.push((SlotOrigin::Stack(0), Ok(SlotPath::Placed)));
    assert_eq!(fates.collect::<Vec<_>>(), expected);

    // The numbers of the locals are those of the function in parts.
    let sum = |n: fn(&LocalReport) -> usize| locals.iter().map(n).sum::<usize>();
    assert_eq!(sum(|local| local.n_phis), report.n_phis);
    assert_eq!(sum(|local| local.n_gets), report.n_gets);
    assert_eq!(sum(|local| local.n_sets), report.n_sets);
    let LocalReport { n_phis, n_gets, n_sets, .. } = locals[5];
    assert_eq!((n_phis, n_gets, n_sets), (1, 2, 2));
}

#[test]
fn the_text_has_a_line_for_each_local() {
    let module = module(SOURCE);
    let mut f = slot_form(&module, 0, &BuildOptions::default());
    let mut scratch = Scratch::default();
    let report = promote(&mut f, &mut scratch);
    let text = print(&f, &module, &report, &scratch);
    let expected = "func f0 set  ; 1 slot, 0 phis placed, 1 read and 1 write removed
  s0: i32            promoted: one block has all accesses; 0 phis, 1 read, 1 write
";
    assert_eq!(text, expected);
    let mut f = slot_form(&module, 1, &BuildOptions::default());
    let report = promote(&mut f, &mut scratch);
    let text = print(&f, &module, &report, &scratch);
    assert_eq!(text.lines().count(), 1 + 11 + 1, "{text}");
    let line = text.lines().find(|line| line.starts_with("  s6: ")).expect("a line");
    let start = "  s6: i32            in memory: its address is used as a number, `call` at @";
    assert!(line.starts_with(start), "{line}");
}

#[test]
fn locals_of_a_function_that_is_too_large_are_left_in_their_slots() {
    let module = module(SOURCE);
    let f = slot_form(&module, 0, &BuildOptions::default());
    let too_large = TooLarge::LiveWords(7);
    let report = PromotionReport { too_large: Some(too_large), n_slots: 1, ..Default::default() };
    let locals = locals(&f, &module, &report, &Scratch::default());
    assert_eq!(locals.len(), 1);
    assert_eq!(locals[0].fate, Fate::Left(too_large));
    assert_eq!(locals[0].fate.to_string(), "left in its slot: more than 7 words of liveness");
}
