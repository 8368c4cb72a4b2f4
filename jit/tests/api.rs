//! The embedding API, in both tiers and all slot modes.

use slotvm::*;

#[test]
fn fib() {
    for &tier in Tier::ALL {
        for slots in SlotMode::ALL {
            let engine = Engine::new(Config::new().tier(tier).slots(slots)).unwrap();
            let module = Module::new(
                &engine,
                r#"
                import "env" "print" func print(i64)
                export "fib" func fib
                func fib(n: i64) -> i64 {
                  local.get n
                  i64.const 2
                  i64.lt_s
                  br_if base
                  local.get n i64.const 1 i64.sub call fib
                  local.get n i64.const 2 i64.sub call fib
                  i64.add
                  return
                base:
                  local.get n
                  call print
                  local.get n
                  return
                }"#,
            )
            .unwrap();
            let mut linker = Linker::new(&engine);
            linker
                .func_wrap("env", "print", |mut caller: Caller<'_, Vec<i64>>, n: i64| {
                    caller.data_mut().push(n);
                })
                .unwrap();
            let mut store = Store::new(&engine, Vec::new());
            let instance = linker.instantiate(&mut store, &module).unwrap();
            let fib = instance.get_typed_func::<i64, i64>(&store, "fib").unwrap();
            assert_eq!(fib.call(&mut store, 10).unwrap(), 55);
            assert_eq!(store.data().len(), 89);
        }
    }
}
