use object::{Object as _, ObjectSection as _, ObjectSymbol as _, SectionKind, SymbolKind};

use super::*;
use crate::{Compile, Config, Engine, Instance, Module, Store, Tier};

/// Held by tests that need the list unchanged.
static ALONE: Mutex<()> = Mutex::new(());

/// Copies of all objects that a debugger would find, newest first.
fn objects() -> Vec<Vec<u8>> {
    let _list = LIST.lock().unwrap_or_else(PoisonError::into_inner);
    let mut found = Vec::new();
    // SAFETY: the lock keeps the list as it is, and its entries point to their objects.
    unsafe {
        let descriptor = &raw mut __jit_debug_descriptor;
        assert_eq!(((*descriptor).version, (*descriptor).action), (1, NO_ACTION));
        assert!((*descriptor).relevant.is_null());
        let (mut entry, mut prev) = ((*descriptor).first, ptr::null_mut());
        while !entry.is_null() {
            assert_eq!((*entry).prev, prev);
            let bytes = usize::try_from((*entry).object_bytes).unwrap();
            found.push(std::slice::from_raw_parts((*entry).object, bytes).to_vec());
            (prev, entry) = (entry, (*entry).next);
        }
    }
    found
}

fn module(engine: &Engine, name: &str) -> Module {
    let source =
        format!("func first() {{ return }}\nfunc {name}(n: i32) -> i32 {{ local.get n return }}");
    Module::from_text(engine, &source).unwrap()
}

/// The symbols of an object: name and address range.
fn symbols(object: &[u8]) -> Vec<(String, Range<usize>)> {
    let file = object::File::parse(object).unwrap();
    let symbols = file.symbols().map(|symbol| {
        assert_eq!(symbol.kind(), SymbolKind::Text);
        let start = symbol.address() as usize;
        (symbol.name().unwrap().to_owned(), start..start + symbol.size() as usize)
    });
    symbols.collect()
}

#[test]
fn functions_are_symbols_where_their_code_lies_until_it_is_dropped() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let engine = Engine::new(Config::new().tier(Tier::BEST).debug_info(true)).unwrap();
    let before = objects().len();
    let modules: Vec<Module> = ["one", "two", "three"].map(|name| module(&engine, name)).into();
    let objects_of_all = objects();
    assert_eq!(objects_of_all.len(), before + 3);
    for (module, (object, name)) in
        modules.iter().rev().zip(objects_of_all.iter().zip(["three", "two", "one"]))
    {
        let codes: Vec<Range<usize>> = module.native().unwrap().codes();
        let expected = vec![("first".into(), codes[0].clone()), (name.into(), codes[1].clone())];
        assert_eq!(symbols(object), expected);
        let file = object::File::parse(&**object).unwrap();
        let text = file.section_by_name(".text").unwrap();
        assert_eq!(text.kind(), SectionKind::UninitializedData, "the code is not in the file");
        let text = text.address() as usize..(text.address() + text.size()) as usize;
        assert!(text.start <= codes[0].start && codes[1].end <= text.end, "{text:?} {codes:?}");
    }
    // From the middle of the list, from its start, and from its end.
    let [one, two, three] = modules.try_into().unwrap();
    for (module, left) in [(two, 2), (three, 1), (one, 0)] {
        drop(module);
        assert_eq!(objects().len(), before + left);
    }
}

#[test]
fn functions_that_are_compiled_when_they_are_called_are_shown_then() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut config = Config::new();
    config.tier(Tier::BEST);
    let engine = Engine::new(config.debug_info(true).compile(Compile::Lazy)).unwrap();
    let source = "export \"run\" func run
        func never() { return }
        func run() { return }";
    let before = objects().len();
    let module = Module::from_text(&engine, source).unwrap();
    let mut store = Store::new(&engine, ());
    let instance = Instance::new(&mut store, &module, &[]).unwrap();
    let run = instance.get_typed_func::<(), ()>(&store, "run").unwrap();
    // The trampoline comes with the first call, and stays as long as the store or the module.
    run.call(&mut store, ()).unwrap();
    let named = |name: &str| {
        let symbols = objects().iter().flat_map(|object| symbols(object)).collect::<Vec<_>>();
        symbols.into_iter().filter(|symbol| symbol.0 == name).map(|symbol| symbol.1).collect()
    };
    let codes: Vec<Range<usize>> = module.native().unwrap().codes();
    assert_eq!(codes.len(), 1);
    let shown: Vec<Range<usize>> = named("run");
    assert_eq!(shown, codes);
    drop((store, module, engine));
    assert_eq!(objects().len(), before);
}

#[test]
fn a_debugger_finds_the_caller_of_every_place_in_the_code() {
    let frames = debug_frame(&(0x1000..0x1234));
    let section = gimli::read::DebugFrame::new(&frames, LittleEndian);
    let bases = gimli::BaseAddresses::default();
    for (pc, is_known) in [(0xfff, false), (0x1000, true), (0x1233, true), (0x1234, false)] {
        use gimli::UnwindSection as _;
        let fde = section.fde_for_address(&bases, pc, gimli::DebugFrame::cie_from_offset);
        assert_eq!(fde.is_ok(), is_known, "{pc:#x}");
    }
}

#[test]
fn code_is_not_shown_unless_asked_for() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = objects().len();
    let engine = Engine::new(Config::new().tier(Tier::BEST)).unwrap();
    let _module = module(&engine, "hidden");
    assert_eq!(objects().len(), before);
}

#[test]
fn threads_add_and_remove_code_at_once() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = objects().len();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                let code = 0x1000 * (thread + 1)..0x1000 * (thread + 1) + 64;
                let mut images = Vec::new();
                for round in 0..200 {
                    let funcs = [(code.clone(), format!("f{thread}\0{round}"))];
                    images.push(DebugImage::register(&code, funcs.into_iter()));
                    let name = format!("f{thread} {round}");
                    assert!(objects().iter().any(|object| symbols(object)[0].0 == name));
                    if round % 3 > 0 {
                        images.remove(images.len() / 2);
                    }
                }
            });
        }
    });
    assert_eq!(objects().len(), before);
}
