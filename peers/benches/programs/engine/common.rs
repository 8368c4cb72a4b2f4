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

        use $api::{Caller, Engine, Error, Extern, Instance, Linker, Memory, Module, Store};

        use super::{Failure, directories};
        use crate::program::{Entry, Run, Wasi};

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

            fn compile(&self, wasm: &[u8]) -> Result<Box<dyn super::Compiled>, Failure> {
                let module = Module::new(&self.engine, wasm).map_err(failure)?;
                Ok(Box::new(Compiled { module, linker: Rc::clone(&self.linker) }))
            }
        }

        struct Compiled {
            module: Module,
            linker: Rc<Linker<Data>>,
        }

        impl super::Compiled for Compiled {
            fn prepare(&self, run: &Run) -> Result<Box<dyn super::Prepared>, Failure> {
                let none = Wasi::default();
                let (wasi, size) = match &run.entry {
                    Entry::Main(size) => (&none, Some(*size)),
                    Entry::Start(wasi) => (wasi, None),
                };
                let dirs = directories(wasi)?;
                let (provider, output) = provide(wasi, dirs.as_ref().map(|dirs| dirs.path()))?;
                let data = Data { wasi: provider, printed: Vec::new() };
                let store = Store::new(self.module.engine(), data);
                let (module, linker) = (self.module.clone(), Rc::clone(&self.linker));
                Ok(Box::new(Prepared { module, linker, store, output, size, _dirs: dirs }))
            }
        }

        struct Prepared {
            module: Module,
            linker: Rc<Linker<Data>>,
            store: Store<Data>,
            output: Output,
            /// Argument of `main`; without it `_start` is called.
            size: Option<i32>,
            _dirs: Option<tempfile::TempDir>,
        }

        impl super::Prepared for Prepared {
            fn go(&mut self) -> Result<i32, Failure> {
                let store = &mut self.store;
                let result = instantiate(&self.linker, store, &self.module).and_then(|instance| {
                    if let Some(size) = self.size {
                        let main = instance.get_typed_func::<i32, i32>(&mut *store, "main")?;
                        return main.call(&mut *store, size);
                    }
                    let start = instance.get_typed_func::<(), ()>(&mut *store, "_start")?;
                    start.call(&mut *store, ()).map(|()| 0)
                });
                result.or_else(|error| exit_code(&error).ok_or_else(|| failure(error)))
            }

            fn printed(self: Box<Self>) -> Vec<u8> {
                let mut bytes = self.store.into_data().printed;
                bytes.extend(printed(self.output));
                bytes
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
            Ok(())
        }
    };
}
