//! Interruption of what guest code waits for.

use super::*;

#[test]
fn bulk_operations_are_interrupted_between_pieces() {
    const PIECE: i32 = 1 << 20;
    let source = r#"
        memory m 200
        export "m" memory m
        table t funcref 600000
        table u funcref 600000
        export "t" table t
        data d "0123456789"
        elem e funcref [ref.func fill]
        export "fill" func fill
        export "copy" func copy
        export "table_fill" func table_fill
        export "table_copy" func table_copy
        export "table_grow" func table_grow
        func fill(dst: i32, byte: i32, len: i32) {
          local.get dst local.get byte local.get len memory.fill return }
        func copy(dst: i32, src: i32, len: i32) {
          local.get dst local.get src local.get len memory.copy return }
        func table_fill(dst: i32, ignored: i32, len: i32) {
          local.get dst ref.func fill local.get len table.fill t return }
        func table_copy(dst: i32, src: i32, len: i32) {
          local.get dst local.get src local.get len table.copy t t return }
        func table_grow(a: i32, b: i32, n: i32) {
          ref.func fill local.get n table.grow t drop return }"#;
    // Function, arguments, and how many polls there are beside the one of the entry.
    let calls: &[(&str, (i32, i32, i32), u32)] = &[
        ("fill", (5, 1, PIECE), 0),
        ("fill", (5, 1, PIECE + 1), 1),
        ("fill", (5, 2, 7 * PIECE + 5), 7),
        ("fill", (12_000_000, 1, PIECE + 107_201), 0), // past the end
        ("copy", (1, 0, 5 * PIECE), 4),
        ("copy", (0, 1, 5 * PIECE), 4),
        ("copy", (PIECE / 2, 77, 5 * PIECE + 9), 5),
        ("copy", (9_000_000, 77, 5 * PIECE + 9), 0), // past the end
        ("table_fill", (100, 0, 300_000), 2),
        ("table_copy", (50, 100, 400_000), 3),
        ("table_copy", (100, 50, 400_000), 3),
        ("table_grow", (0, 0, 140_000), 1),
    ];
    let mut expected: Option<Vec<_>> = None;
    for kind in epoch_kinds() {
        let mut store = Store::new(&kind.engine, 0_u32);
        let module = module(&kind.engine, source);
        let instance = Instance::new(&mut store, &module, &[]).unwrap();
        // The store's data counts the polls that let it continue.
        store.epoch_deadline_callback(|mut context| {
            if *context.data() == 0 {
                return Ok(UpdateDeadline::Interrupt);
            }
            *context.data_mut() -= 1;
            Ok(UpdateDeadline::Continue(0))
        });
        let memory = instance.get_memory(&store, "m").unwrap();
        let table = instance.get_table(&store, "t").unwrap();
        for (i, byte) in memory.data_mut(&mut store).iter_mut().enumerate() {
            *byte = ((i * i) >> 7) as u8;
        }
        let mut found = Vec::new();
        for &(name, args, n_polls) in calls {
            let func = instance.get_typed_func::<(i32, i32, i32), ()>(&store, name).unwrap();
            for n in (0..n_polls.min(3)).chain([n_polls, 100]) {
                *store.data_mut() = 1 + n;
                let end = func.call(&mut store, args).map_err(|error| place(&error));
                if n < n_polls {
                    let code = end.as_ref().unwrap_err().0;
                    assert_eq!(code, TrapCode::Interrupted, "{name}{args:?}, {kind}");
                } else {
                    let ended = end != Err((TrapCode::Interrupted, Vec::new()));
                    assert!(ended && *store.data() == n - n_polls, "{name}{args:?}, {kind}");
                }
                let (words, rest) = memory.data(&store).as_chunks::<8>();
                assert!(rest.is_empty());
                let hash = words.iter().fold(0_u64, |hash, &word| {
                    (hash.rotate_left(5) ^ u64::from_le_bytes(word))
                        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                });
                let size = table.size(&store);
                let mut set = (0..size)
                    .step_by(4999)
                    .map(|i| u32::from(table.get(&store, i).unwrap().unwrap_func_ref().is_some()));
                found.push((name, n, end, hash, size, set.by_ref().sum::<u32>()));
            }
        }
        match &expected {
            None => expected = Some(found),
            Some(expected) => {
                for (expected, found) in expected.iter().zip(&found) {
                    assert_eq!(found, expected, "{kind}");
                }
            }
        }
    }
}

#[test]
fn host_functions_that_wait_are_interrupted_as_guest_code_is() {
    let source = "import \"env\" \"host\" func host()
        export \"run\" func run
        func run() { call host return }";
    let wait = |mut caller: Caller<'_, u32>| -> Result<(), Error> {
        loop {
            caller.check_interrupt()?;
            *caller.data_mut() += 1;
            std::thread::yield_now();
        }
    };
    // By time.
    for_all_with(
        |config| {
            config.timeout(Some(Duration::from_millis(3)));
        },
        |engine| {
            let mut linker = Linker::new(engine);
            linker.func_wrap("env", "host", wait).unwrap();
            let mut store = Store::new(engine, 0_u32);
            let instance = linker.instantiate(&mut store, &module(engine, source)).unwrap();
            let run = instance.get_typed_func::<(), ()>(&store, "run").unwrap();
            let error = run.call(&mut store, ()).unwrap_err();
            assert_eq!(error.trap_code(), Some(TrapCode::Interrupted));
        },
    );
    // By epochs: the callback lets it continue, fails, and interrupts.
    for kind in epoch_kinds() {
        let mut linker = Linker::new(&kind.engine);
        linker.func_wrap("env", "host", wait).unwrap();
        let mut store = Store::new(&kind.engine, 0_u32);
        store.epoch_deadline_callback(|context| match *context.data() {
            0..5 => Ok(UpdateDeadline::Continue(0)),
            5 => Err(Error::host("enough")),
            _ => Ok(UpdateDeadline::Interrupt),
        });
        let module = module(&kind.engine, source);
        let instance = linker.instantiate(&mut store, &module).unwrap();
        let run = instance.get_typed_func::<(), ()>(&store, "run").unwrap();
        let before = *store.data();
        let error = run.call(&mut store, ()).unwrap_err();
        assert_eq!((error.to_string().as_str(), before, *store.data()), ("enough", 0, 5), "{kind}");
        *store.data_mut() = 6;
        let error = run.call(&mut store, ()).unwrap_err();
        assert_eq!(error.trap_code(), Some(TrapCode::Interrupted), "{kind}");
    }
}
