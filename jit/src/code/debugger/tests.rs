use object::{Object as _, ObjectSection as _, ObjectSymbol as _, SectionKind, SymbolKind};

use super::*;
use crate::code::dwarf::debug_frame;
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
    let frames = debug_frame(&(0x1000..0x1234), &[]);
    let section = gimli::read::DebugFrame::new(&frames, gimli::LittleEndian);
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
                    let name = format!("f{thread}\0{round}");
                    let funcs = [Shown { code: code.clone(), name, debug: None }];
                    images.push(DebugImage::register(&code, &funcs, None));
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

/// The sections of an object, as a reader of DWARF takes them.
fn dwarf(object: &[u8]) -> gimli::Dwarf<gimli::EndianSlice<'_, gimli::LittleEndian>> {
    let file = object::File::parse(object).unwrap();
    let section = |id: gimli::SectionId| {
        let data =
            file.section_by_name(id.name()).map_or(&[][..], |section| section.data().unwrap());
        Ok::<_, gimli::Error>(gimli::EndianSlice::new(data, gimli::LittleEndian))
    };
    gimli::Dwarf::load(section).unwrap()
}

#[test]
fn code_is_described_with_its_source_places_and_locals() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let engine = Engine::new(Config::new().tier(Tier::BEST).debug_info(true)).unwrap();
    let source = r#"
        module "shapes"  name file 1 "area.lang"
        func area(width: f64, height: f64) -> f64 {
            local area: f64
            .line 3:5, 1
            local.get width  local.get height  f64.mul  local.set area
            .line 4:1
            local.get area  f64.sqrt  return }"#;
    let module = Module::from_text(&engine, source).unwrap();
    let code = module.native().unwrap().codes().remove(0);
    let objects = objects();
    let dwarf = dwarf(&objects[0]);
    let header = dwarf.units().next().unwrap().unwrap();
    let unit = dwarf.unit(header).unwrap();
    let text = |value: &gimli::AttributeValue<_>| {
        let text = dwarf.attr_string(&unit, *value).unwrap();
        text.to_string().unwrap().to_owned()
    };

    let mut named = Vec::new();
    let mut entries = unit.entries();
    while let Some(entry) = entries.next_dfs().unwrap() {
        if let Some(name) = entry.attr_value(gimli::DW_AT_name) {
            named.push((entry.tag(), text(&name), entry.attr_value(gimli::DW_AT_location)));
        }
    }
    let tags: Vec<(gimli::DwTag, &str)> =
        named.iter().map(|(tag, name, _)| (*tag, &**name)).collect();
    for expected in [
        (gimli::DW_TAG_compile_unit, "shapes"),
        (gimli::DW_TAG_subprogram, "area"),
        (gimli::DW_TAG_formal_parameter, "width"),
        (gimli::DW_TAG_formal_parameter, "height"),
        (gimli::DW_TAG_variable, "area"),
        (gimli::DW_TAG_base_type, "f64"),
    ] {
        assert!(tags.contains(&expected), "{expected:?}: {tags:?}");
    }
    // Each is somewhere in the function's code, and nowhere else.
    for (_, name, location) in named.iter().filter(|(.., location)| location.is_some()) {
        let mut list = dwarf.attr_locations(&unit, location.unwrap()).unwrap().unwrap();
        let mut n_places = 0;
        while let Some(place) = list.next().unwrap() {
            let gimli::Range { begin, end } = place.range;
            assert!(code.start as u64 <= begin && begin < end && end <= code.end as u64, "{name}");
            n_places += 1;
        }
        assert!(n_places > 0, "{name}");
    }

    let program = unit.line_program.clone().unwrap();
    let mut rows = program.rows();
    let mut places = Vec::new();
    while let Some((header, row)) = rows.next_row().unwrap() {
        assert!((code.start as u64..=code.end as u64).contains(&row.address()));
        if let (Some(line), Some(file)) = (row.line(), row.file(header)) {
            let column = match row.column() {
                gimli::ColumnType::LeftEdge => 0,
                gimli::ColumnType::Column(column) => column.get(),
            };
            places.push((text(&file.path_name()), line.get(), column));
        }
    }
    places.dedup();
    assert_eq!(places, [("area.lang".into(), 3, 5), ("shapes".into(), 4, 1)]);
}

#[test]
fn code_whose_frame_is_too_large_has_no_locals() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut config = Config::new();
    config.tier(Tier::BEST).slots(crate::SlotMode::Memory).signals_based_traps(false);
    let engine = Engine::new(config.debug_info(true)).unwrap();
    for (n_locals, n_shown) in [(100, 100), (13_000, 0)] {
        let locals: Vec<String> = (0..n_locals).map(|i| format!("x{i}: i64")).collect();
        let writes: Vec<String> =
            (0..n_locals).map(|i| format!("i64.const {i} local.set x{i}")).collect();
        let source =
            format!("func f() {{ local {}\n{} return }}", locals.join(", "), writes.join("\n"));
        let _module = Module::from_text(&engine, &source).unwrap();
        let objects = objects();
        let dwarf = dwarf(&objects[0]);
        let unit = dwarf.unit(dwarf.units().next().unwrap().unwrap()).unwrap();
        let (mut entries, mut n) = (unit.entries(), 0);
        while let Some(entry) = entries.next_dfs().unwrap() {
            n += usize::from(entry.tag() == gimli::DW_TAG_variable);
        }
        assert_eq!(n, n_shown);
    }
}
