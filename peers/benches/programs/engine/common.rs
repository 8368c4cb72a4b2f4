//! Shared text of the engines, whose embedding APIs use the same names.

/// Running programs, for the engine of a crate. What the crates do not have in common is beside it:
///
/// * `Provider`, what their implementations of WASI keep of a program, and `Output`, where it prints;
/// * `provide(&Wasi, Option<&Path>) -> Result<(Provider, Output), Failure>`, which gets the directory of the
///   host in which those of the program are;
/// * `printed(Output) -> Vec<u8>`;
/// * `add_wasi(&mut Linker<Data>) -> Result<(), Failure>`;
/// * `instantiate(&Linker<Data>, &mut Store<Data>, &Module) -> Result<Instance, Error>`;
/// * `exit_code(&Error) -> Option<i32>`.
macro_rules! common {
    ($api:ident) => {
        use std::rc::Rc;
        use std::time::Duration;

        use vmrun::bench::clock::thread_cpu_time;
        use $api::{Caller, Engine, Error, Extern, Instance, Linker, Memory, Module, Store};

        use super::{Code, Failure, directories, repeat};
        use crate::program::{Entry, Outcome, Run, Wasi};

        /// Data of stores.
        struct Data {
            wasi: Provider,
            /// Output of a kernel.
            printed: Vec<u8>,
        }

        /// An engine with all that programs import.
        struct Host {
            engine: Engine,
            linker: Rc<Linker<Data>>,
        }

        impl Host {
            fn new(engine: Engine) -> Host {
                let mut linker = Linker::new(&engine);
                add_env(&mut linker).expect("the names are not taken");
                add_wasi(&mut linker).expect("the names are not taken");
                Host { engine, linker: Rc::new(linker) }
            }

            fn compile(&self, code: &Code) -> Result<Box<dyn super::Compiled>, Failure> {
                let before = thread_cpu_time();
                let module = Module::new(&self.engine, &code.wasm).map_err(failure)?;
                let taken = thread_cpu_time() - before;
                Ok(Box::new(Compiled { module, taken, linker: Rc::clone(&self.linker) }))
            }
        }

        struct Compiled {
            module: Module,
            linker: Rc<Linker<Data>>,
            /// The time of compiling.
            taken: Duration,
        }

        impl super::Compiled for Compiled {
            fn compile_time(&self) -> Option<Duration> {
                Some(self.taken)
            }

            fn run(&self, run: &Run, n: u32) -> Result<(Outcome, Duration), Failure> {
                repeat(n, || self.once(run))
            }
        }

        impl Compiled {
            /// Prepares everything outside of the guest, and takes the time of making an instance and calling it.
            fn once(&self, run: &Run) -> Result<(Outcome, Duration), Failure> {
                let none = Wasi::default();
                let (wasi, size) = match &run.entry {
                    Entry::Main(size) => (&none, Some(*size)),
                    Entry::Start(wasi) => (wasi, None),
                };
                let dirs = directories(wasi)?;
                let (provider, output) = provide(wasi, dirs.as_ref().map(|dirs| dirs.path()))?;
                let data = Data { wasi: provider, printed: Vec::new() };
                let mut store = Store::new(self.module.engine(), data);
                let before = thread_cpu_time();
                let exit = self.go(&mut store, size)?;
                let taken = thread_cpu_time() - before;
                let mut bytes = store.into_data().printed;
                bytes.extend(printed(output));
                Ok((Outcome { printed: bytes, exit }, taken))
            }

            /// Calls `main` of a new instance with a size, or without one `_start`.
            fn go(&self, store: &mut Store<Data>, size: Option<i32>) -> Result<i32, Failure> {
                let result = instantiate(&self.linker, store, &self.module).and_then(|instance| {
                    if let Some(size) = size {
                        let main = instance.get_typed_func::<i32, i32>(&mut *store, "main")?;
                        return main.call(&mut *store, size);
                    }
                    let start = instance.get_typed_func::<(), ()>(&mut *store, "_start")?;
                    start.call(&mut *store, ()).map(|()| 0)
                });
                result.or_else(|error| exit_code(&error).ok_or_else(|| failure(error)))
            }
        }

        fn failure(error: impl std::fmt::Debug) -> Failure {
            format!("{error:?}")
        }

        fn memory(caller: &mut Caller<'_, Data>) -> Memory {
            let memory = caller.get_export("memory").and_then(Extern::into_memory);
            memory.expect("kernels export their memory")
        }

        /// The host functions of `vmrun` that kernels import.
        fn add_env(linker: &mut Linker<Data>) -> Result<(), Error> {
            fn print(mut caller: Caller<'_, Data>, value: impl std::fmt::Display) {
                use std::io::Write;
                write!(caller.data_mut().printed, "{value}").expect("it is memory");
            }
            type C<'a> = Caller<'a, Data>;
            linker.func_wrap("env", "print_i32", |c: C<'_>, v: i32| print(c, v))?;
            linker.func_wrap("env", "print_i64", |c: C<'_>, v: i64| print(c, v))?;
            linker.func_wrap("env", "print_f64", |c: C<'_>, v: f64| print(c, v))?;
            linker.func_wrap("env", "print_char", |c: C<'_>, code: i32| {
                print(c, char::from_u32(code as u32).unwrap_or(char::REPLACEMENT_CHARACTER));
            })?;
            linker.func_wrap("env", "print_str", |mut c: C<'_>, ptr: i32, len: i32| {
                let memory = memory(&mut c);
                let (start, len) = (ptr as u32 as usize, len as u32 as usize);
                let bytes = memory.data(&c)[start..start + len].to_vec();
                c.data_mut().printed.extend(bytes);
            })?;
            // Marks of sightglass's programs around what is to be timed; here it is all.
            linker.func_wrap("bench", "start", || {})?;
            linker.func_wrap("bench", "end", || {})?;
            Ok(())
        }
    };
}
