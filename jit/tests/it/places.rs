//! Errors with places: the guest frames that an error of the host carries, and those that a host function sees, in engines of
//! all kinds.

use slotvm::{
    AsContextMut, Backtrace, Caller, CustomTrap, Engine, Error, Instance, Linker, Store, Trap,
    TrapCode, TypedFunc, UpdateDeadline,
};

use slotvm_runtime::limits::PIECE_BYTES_MAX;

use crate::support::{for_all, for_all_with, instance_with, marked};

/// Functions and lines of the listed frames, and the number of the others.
type Places = (Vec<(String, Option<u32>)>, u64);

fn places(backtrace: &Backtrace) -> Places {
    let frames = backtrace.frames().iter().map(|frame| (frame.func_name(), frame.line()));
    (frames.collect(), backtrace.n_frames_omitted())
}

/// The state of the host functions.
#[derive(Default)]
struct World {
    /// Seen by [`look`].
    seen: Vec<Places>,
    /// The calls of it that do not fail.
    n_before_failure: u32,
    /// A function to call at epoch deadlines.
    callback: Option<TypedFunc<i32, ()>>,
}

#[derive(Debug, PartialEq, thiserror::Error)]
#[error("enough")]
struct Enough;

/// Notes where it is called, and fails in the end.
fn look(mut caller: Caller<'_, World>) -> Result<(), Error> {
    let seen = places(&caller.backtrace());
    let world = caller.data_mut();
    world.seen.push(seen);
    if world.n_before_failure == 0 {
        return Err(Error::host(Enough));
    }
    world.n_before_failure -= 1;
    Ok(())
}

/// Calls an export of the caller.
fn call_back(mut caller: Caller<'_, World>, n: i32) -> Result<(), Error> {
    let before = places(&caller.backtrace());
    let result = down(&caller).call(&mut caller, n);
    assert_eq!(places(&caller.backtrace()), before, "the same as before the call");
    result
}

/// Calls it on another thread, and catches a panic on the way.
fn call_elsewhere(mut caller: Caller<'_, World>, n: i32) -> Result<(), Error> {
    let before = places(&caller.backtrace());
    let down = down(&caller);
    let result = std::thread::scope(|scope| {
        let caller = &mut caller;
        scope.spawn(move || down.call(caller, n)).join().unwrap()
    });
    assert_eq!(places(&caller.backtrace()), before, "the same as before the call");
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        _ = down_of(&caller, "panics").call(&mut caller, 3);
    }));
    assert_eq!(panic.unwrap_err().downcast_ref(), Some(&Enough));
    assert_eq!(places(&caller.backtrace()), before, "the same as before the panic");
    result
}

fn down(caller: &Caller<'_, World>) -> TypedFunc<i32, ()> {
    down_of(caller, "down")
}

fn down_of(caller: &Caller<'_, World>, name: &str) -> TypedFunc<i32, ()> {
    let func = caller.get_export(name).and_then(|export| export.into_func()).unwrap();
    func.typed(caller).unwrap()
}

fn give_up() {
    // Unlike `panic!` this prints nothing.
    std::panic::resume_unwind(Box::new(Enough));
}

const SOURCE: &str = r#"
    import "env" "look" func look()
    import "env" "call_back" func call_back(i32)
    import "env" "call_elsewhere" func call_elsewhere(i32)
    import "env" "give_up" func give_up()
    memory m 128
    table t funcref 1
    elem e t at i32.const 0 func small
    export "run" func run
    export "down" func down
    export "panics" func panics
    export "fill" func fill
    func run(n: i32, how: i32) {
        local.get how  br_table [by_back, by_elsewhere] directly
      directly:
        local.get n  call down  return ; directly
      by_back:
        local.get n  call call_back  return ; back
      by_elsewhere:
        local.get n  call call_elsewhere  return ; elsewhere
    }
    func down(n: i32) {
        local.get n  i32.eqz  br_if bottom
        local.get n  i32.const 1  i32.sub  call down ; again
        return
      bottom:
        i32.const 0  call_indirect () t ; indirect
        return
    }
    func small() { call smaller ; in small
      return }
    func smaller() { call look ; in smaller
      return_call last }
    func last() { return_call look }
    func panics(n: i32) {
        local.get n  i32.eqz  br_if bottom
        local.get n  i32.const 1  i32.sub  call panics  return
      bottom:
        call give_up  return
    }
    func fill(n: i32) {
        i32.const 0  i32.const 7  local.get n
        memory.fill ; filling
        return ; start
    }"#;

fn ready(engine: &Engine) -> (Store<World>, Instance) {
    let mut linker = Linker::new(engine);
    linker.func_wrap("env", "look", look).unwrap();
    linker.func_wrap("env", "call_back", call_back).unwrap();
    linker.func_wrap("env", "call_elsewhere", call_elsewhere).unwrap();
    linker.func_wrap("env", "give_up", give_up).unwrap();
    instance_with(engine, SOURCE, &linker, World::default())
}

/// The frames of a call of `down` with a number, and of the functions that it leads to.
fn of_down(n: i32) -> Vec<(String, Option<u32>)> {
    let line = |mark| Some(marked(SOURCE, mark)[0]);
    let inner = [("smaller", "in smaller"), ("small", "in small"), ("down", "indirect")];
    let again = (0..n).map(|_| ("down", "again"));
    inner.into_iter().chain(again).map(|(name, mark)| (name.to_owned(), line(mark))).collect()
}

fn way(how: i32) -> Vec<(String, Option<u32>)> {
    let marks = ["back", "elsewhere", "directly"];
    vec![("run".to_owned(), Some(marked(SOURCE, marks[how as usize])[0]))]
}

#[test]
fn errors_of_the_host_carry_the_frames_that_the_host_function_sees() {
    for_all(|engine| {
        let (mut store, instance) = ready(engine);
        let run = instance.get_typed_func::<(i32, i32), ()>(&store, "run").unwrap();
        for round in 0..6 {
            for (n, how) in [(0, 2), (3, 0), (2, 1), (5, 2)] {
                // At the first call, then at the second, which is a tail call of a tail call.
                *store.data_mut() = World { n_before_failure: round % 2, ..World::default() };
                let error = run.call(&mut store, (n, how)).unwrap_err();
                let mut expected = of_down(n);
                if round % 2 == 1 {
                    assert_eq!(store.data().seen[0], ([of_down(n), way(how)].concat(), 0));
                    // The functions whose place it has taken are gone.
                    expected.remove(0);
                }
                expected.extend(way(how));
                let found = places(error.backtrace().expect("an error of the host"));
                assert_eq!(found, (expected, 0));
                assert_eq!(store.data().seen.last(), Some(&found));
                let Error::Host(error) = error else { panic!("{error}") };
                assert_eq!(error.downcast_ref(), Some(&Enough));
                assert_eq!(error.to_string(), "enough");
                assert!(format!("{error:?}").starts_with("Enough\n    at small"), "{error:?}");
            }
        }
    });
}

#[test]
fn long_backtraces_count_what_they_leave_out() {
    for_all(|engine| {
        let (mut store, instance) = ready(engine);
        let run = instance.get_typed_func::<(i32, i32), ()>(&store, "run").unwrap();
        for _ in 0..3 {
            let error = run.call(&mut store, (1000, 0)).unwrap_err();
            let all = [of_down(1000), way(0)].concat();
            let expected = (all[..100].to_vec(), all.len() as u64 - 100);
            assert_eq!(places(error.backtrace().unwrap()), expected);
            assert_eq!(store.data().seen.last(), Some(&expected));
        }
    });
}

#[test]
fn functions_that_the_host_calls_itself_see_no_frames() {
    for_all(|engine| {
        let (mut store, _) = ready(engine);
        let func = slotvm::Func::wrap(&mut store, look).unwrap();
        let error = func.call(&mut store, &[], &mut []).unwrap_err();
        assert_eq!(places(error.backtrace().unwrap()), (vec![], 0));
        assert_eq!(store.data().seen, [(vec![], 0)]);
        assert!(Error::Usage(String::new()).backtrace().is_none());
    });
}

#[test]
fn what_an_epoch_callback_calls_sees_the_frames_below() {
    let configure = |config: &mut slotvm::Config| {
        config.epoch_interruption(true);
    };
    for_all_with(configure, |engine| {
        let (mut store, instance) = ready(engine);
        let down = instance.get_typed_func::<i32, ()>(&store, "down").unwrap();
        let fill = instance.get_typed_func::<i32, ()>(&store, "fill").unwrap();
        store.epoch_deadline_callback(|mut context| {
            if let Some(callback) = context.data_mut().callback {
                context.data_mut().n_before_failure = 2;
                // The function is not interrupted itself.
                context.set_epoch_deadline(1);
                callback.call(context.as_context_mut(), 1)?;
            }
            Ok(UpdateDeadline::Continue(0))
        });
        store.set_epoch_deadline(0);
        for n_bytes in [10, 8 << 20, 10, 8 << 20] {
            *store.data_mut() = World { callback: Some(down), ..World::default() };
            fill.call(&mut store, n_bytes).unwrap();
            let below: Vec<Option<u32>> = store
                .data()
                .seen
                .iter()
                .step_by(2)
                .map(|seen| {
                    assert_eq!(seen.0[..4], of_down(1));
                    assert_eq!((seen.0.len(), &*seen.0[4].0), (5, "fill"));
                    seen.0[4].1
                })
                .collect();
            // At the start of the function, then between the pieces of the operation.
            let filling = marked(SOURCE, "filling")[0];
            let n_pieces = n_bytes as usize / PIECE_BYTES_MAX as usize;
            let expected =
                [vec![Some(filling - 1)], vec![Some(filling); n_pieces.saturating_sub(1)]].concat();
            assert_eq!(below, expected);
        }
    });
}

/// Traps of three kinds, each in a function that is inlined where that is done.
const TRAPS: &str = r#"
    name file 1 "main.wend"
    name trap 7 "no such key"
    import "env" "refuse" func refuse(i32)
    export "run" func run
    func run(n: i32) {
        .line 10:3, 1
        local.get n  call leaf
        .line 11
        return
    }
    func leaf(n: i32) {
        .line 20:5, 1
        local.get n  br_table [seven, eight] other
      seven:
        .line 21:9, 1
        trap 7
      eight:
        .line 22:9
        trap 8
      other:
        .line 23, 1
        local.get n  call refuse
        .line 0
        return
    }"#;

#[test]
fn traps_have_the_numbers_and_messages_of_the_program_or_the_host() {
    for_all(|engine| {
        let mut linker = Linker::new(engine);
        linker
            .func_wrap("env", "refuse", |n: i32| match n {
                2 => Err(Trap::custom(70_000, "the host refuses")),
                3 => Err(Trap::custom(7, "")),
                _ => Ok(()),
            })
            .unwrap();
        let (mut store, instance) = instance_with(engine, TRAPS, &linker, ());
        let run = instance.get_typed_func::<i32, ()>(&store, "run").unwrap();
        for _ in 0..4 {
            run.call(&mut store, 4).unwrap();
            let expected = [
                (7, Some("no such key"), "no such key (trap 7)", "main.wend:21:9"),
                (8, None, "trap 8", "line 22:9"),
                (70_000, Some("the host refuses"), "the host refuses (trap 70000)", "main.wend:23"),
                (7, None, "trap 7", "main.wend:23"),
            ];
            for (n, (number, message, shown, place)) in (0..).zip(expected) {
                let error = run.call(&mut store, n).unwrap_err();
                assert_eq!(error.trap_code(), Some(TrapCode::Custom));
                let text = error.to_string();
                let lines: Vec<&str> = text.lines().collect();
                assert_eq!((lines.len(), lines[0]), (3, shown), "{text}");
                assert!(lines[1].starts_with("    at leaf (offset 0x"), "{text}");
                assert!(lines[1].ends_with(&format!(", {place})")), "{text}");
                assert!(lines[2].ends_with(", main.wend:10:3)"), "{text}");
                let Error::Trap(trap) = error else { panic!("{error}") };
                let custom = CustomTrap { number, message: message.map(str::to_owned) };
                assert_eq!((trap.custom_trap(), trap.message().as_str()), (Some(&custom), shown));
                let frame = &trap.frames()[1];
                let found = (frame.file(), frame.line(), frame.column());
                assert_eq!(found, (Some("main.wend"), Some(10), Some(3)));
            }
        }
    });
}
