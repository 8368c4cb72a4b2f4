//! `vmrun objdump`: the native code of a program, instruction by instruction, with the bytecode that it comes from.

use std::fmt::Write as _;
use std::sync::Arc;

use serde::Serialize;
use slotvm::compiler::{BytecodePlace, CodeCall, CodeTarget, FunctionCode};
use slotvm::{Config, Engine, Module, Tier};
use slotvm_bytecode::VerifiedModule;
use slotvm_bytecode::inst::CodeReader;
use slotvm_bytecode::printable::Printable;
use slotvm_bytecode::text::Printer;

use super::dump::find_func;
use crate::cli::ObjdumpArgs;
use crate::error::CliError;
use crate::load::load;
use crate::output::{print, print_json};
use crate::progress::Progress;
use slotvm_views::disassembly::{NativeInst, disassemble};
use slotvm_views::names::func_name;

pub(super) fn objdump(args: &ObjdumpArgs) -> Result<(), CliError> {
    let progress = Progress::spinner("compiling");
    let verified = Arc::new(load(&args.program)?.module);
    let mut config = Config::new();
    config.tier(Tier::Jit);
    let module = Module::from_verified(&Engine::new(&config)?, verified.clone())
        .map_err(|error| CliError::module(&args.program, error))?;
    drop(progress);
    let funcs = match &args.func.name {
        Some(name) => {
            let func = find_func(&verified, name)?;
            func..func + 1
        }
        None => verified.n_imported_funcs()..verified.n_funcs(),
    };
    if args.json.is_asked {
        let listed: Result<Vec<_>, CliError> = funcs
            .map(|func| {
                let (code, insts) = code_of(&module, func)?;
                Ok(listed(&verified, &code, &insts))
            })
            .collect();
        return print_json(&Listing { target: slotvm::host_target(), functions: listed? });
    }
    for (i, func) in funcs.enumerate() {
        let (code, insts) = code_of(&module, func)?;
        let blank = if i > 0 { "\n" } else { "" };
        print(&format!("{blank}{}", text(&verified, &code, &insts)))?;
    }
    Ok(())
}

fn code_of(module: &Module, func: u32) -> Result<(FunctionCode, Vec<NativeInst>), CliError> {
    let code = module.machine_code(func)?.expect("the engine compiles all defined functions");
    let insts = disassemble(&code)?;
    Ok((code, insts))
}

/// The code of a function as text: a heading, and a line for each instruction.
fn text(module: &VerifiedModule, code: &FunctionCode, insts: &[NativeInst]) -> String {
    let base = code.module_offset.unwrap_or(0);
    let place = match code.module_offset {
        Some(_) => "",
        None => ", not placed since nothing enters it",
    };
    let (name, func, len) = (shown_name(module, code.func), code.func, code.bytes.len());
    let mut text = format!("{base:08x} <{name}>: function {func}, {len} bytes{place}\n");
    let mut before: &[BytecodePlace] = &[];
    for inst in insts {
        let bytes = &code.bytes[inst.code.start as usize..inst.code.end as usize];
        // Longer instructions go on in lines of their own.
        let mut lines = bytes.chunks(BYTES_IN_LINE);
        let address = base + u64::from(inst.code.start);
        let first = hex(lines.next().unwrap_or(&[]), " ");
        let _ = write!(text, "{address:8x}:  {first:24} {:40}", inst.text);
        let notes = notes(module, code, inst, &mut before);
        if !notes.is_empty() {
            let _ = write!(text, " ; {}", notes.join("; "));
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
        for (i, line) in (1..).zip(lines) {
            let address = address + (i * BYTES_IN_LINE) as u64;
            let _ = writeln!(text, "{address:8x}:  {}", hex(line, " "));
        }
    }
    text
}

/// The bytes of an instruction that fit into its line.
const BYTES_IN_LINE: usize = 8;

/// The remarks on an instruction: the bytecode that it comes from, if that has changed, the names that it refers to, and
/// its traps.
fn notes<'c>(
    module: &VerifiedModule,
    code: &'c FunctionCode,
    inst: &NativeInst,
    before: &mut &'c [BytecodePlace],
) -> Vec<String> {
    let mut notes = Vec::new();
    let places = code.places_at(inst.code.start);
    let returned = |call: &CodeCall| call.return_offset;
    let is_call = code.calls.binary_search_by_key(&inst.code.end, returned).is_ok();
    if (places != *before || is_call) && !inst.is_data {
        *before = places;
        if let [innermost, around @ ..] = places {
            let mut note = place(module, code.func, *innermost);
            for outer in around {
                let _ = write!(note, ", inlined at {}", at(module, code.func, *outer));
            }
            notes.push(note);
        }
    }
    for reloc in code.relocations_in(inst.code.clone()) {
        notes.push(match &reloc.target {
            CodeTarget::Func(func) => format!("<{}>, function {func}", shown_name(module, *func)),
            CodeTarget::Runtime(name) => format!("<{name}> of the runtime"),
            other => format!("{other:?}"),
        });
    }
    if let Some(data) = inst.data {
        notes.push(format!("{:#x}", code.module_offset.unwrap_or(0) + u64::from(data)));
    }
    for trap in code.traps_in(inst.code.clone()) {
        // A trap may come from elsewhere than the instruction: a load that was folded into another one.
        let from = match (trap.places.first(), places.first()) {
            (Some(&from), here) if Some(&from) != here => {
                format!(" at {}", at(module, code.func, from))
            }
            _ => String::new(),
        };
        notes.push(format!("trap: {}{from}", reason(trap.reason)));
    }
    notes
}

fn reason(code: Option<slotvm::TrapCode>) -> String {
    code.map_or("error of a host function".into(), |code| code.to_string())
}

/// `@000c i64.add, line 3`; with the function, if that is another one.
fn place(module: &VerifiedModule, own: u32, place: BytecodePlace) -> String {
    let mut text = at(module, own, place);
    if let Some(func) = module.func(place.func)
        && let Ok(inst) = CodeReader::new(&func.code, place.offset).read()
    {
        let inst = Printer::new(module.module()).func(place.func).inst(inst);
        let _ = write!(text, " {inst}");
    }
    if let Some(line) = line(module, place) {
        let _ = write!(text, ", line {line}");
    }
    text
}

fn at(module: &VerifiedModule, own: u32, place: BytecodePlace) -> String {
    match place.func == own {
        true => format!("@{:04x}", place.offset),
        false => format!("{} @{:04x}", shown_name(module, place.func), place.offset),
    }
}

fn line(module: &VerifiedModule, place: BytecodePlace) -> Option<u32> {
    module.func(place.func)?.line_at(place.offset)
}

fn shown_name(module: &VerifiedModule, func: u32) -> String {
    Printable(&func_name(module, func)).to_string()
}

fn hex(bytes: &[u8], separator: &str) -> String {
    let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.join(separator)
}

/// The output of `--json`. Addresses count from the start of the module's code, offsets from that of the function.
#[derive(Serialize)]
struct Listing {
    target: String,
    functions: Vec<ListedFunction>,
}

#[derive(Serialize)]
struct ListedFunction {
    func: u32,
    name: String,
    /// `null` if nothing enters the function.
    address: Option<u64>,
    bytes: usize,
    instructions: Vec<ListedInst>,
}

#[derive(Serialize)]
struct ListedInst {
    offset: u32,
    bytes: String,
    text: String,
    is_data: bool,
    /// The bytecode instruction, and the calls that it was inlined at, innermost first.
    places: Vec<ListedPlace>,
    relocations: Vec<ListedRelocation>,
    /// The reason why it can trap.
    trap: Option<String>,
    /// The offset of the constant or jump table that it refers to.
    data: Option<u32>,
}

#[derive(Serialize)]
struct ListedPlace {
    func: u32,
    offset: u32,
    line: Option<u32>,
}

#[derive(Serialize)]
struct ListedRelocation {
    offset: u32,
    kind: String,
    func: Option<u32>,
    name: String,
    addend: i64,
}

fn listed(module: &VerifiedModule, code: &FunctionCode, insts: &[NativeInst]) -> ListedFunction {
    let inst = |inst: &NativeInst| ListedInst {
        offset: inst.code.start,
        bytes: hex(&code.bytes[inst.code.start as usize..inst.code.end as usize], ""),
        text: inst.text.clone(),
        is_data: inst.is_data,
        places: listed_places(module, code.places_at(inst.code.start)),
        relocations: listed_relocations(module, code, inst),
        trap: code.traps_in(inst.code.clone()).first().map(|trap| reason(trap.reason)),
        data: inst.data,
    };
    ListedFunction {
        func: code.func,
        name: module.func_name(code.func),
        address: code.module_offset,
        bytes: code.bytes.len(),
        instructions: insts.iter().map(inst).collect(),
    }
}

fn listed_places(module: &VerifiedModule, places: &[BytecodePlace]) -> Vec<ListedPlace> {
    let listed = |&place: &BytecodePlace| ListedPlace {
        func: place.func,
        offset: place.offset,
        line: line(module, place),
    };
    places.iter().map(listed).collect()
}

fn listed_relocations(
    module: &VerifiedModule,
    code: &FunctionCode,
    inst: &NativeInst,
) -> Vec<ListedRelocation> {
    let relocations = code.relocations_in(inst.code.clone()).iter();
    let listed = relocations.map(|reloc| {
        let (func, name) = match &reloc.target {
            CodeTarget::Func(func) => (Some(*func), module.func_name(*func)),
            CodeTarget::Runtime(name) => (None, name.clone()),
            other => (None, format!("{other:?}")),
        };
        let (offset, kind, addend) = (reloc.offset, reloc.kind.clone(), reloc.addend);
        ListedRelocation { offset, kind, func, name, addend }
    });
    listed.collect()
}
