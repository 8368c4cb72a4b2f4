//! LLVM IR to graphs with slot accesses, so that construction is measured on what a C compiler makes.
//!
//! The text is that of clang 14 to 19 before any optimisation:
//!
//! ```text
//! clang-19 -O0 -Xclang -disable-O0-optnone -S -emit-llvm sqlite3.c
//! ```
//!
//! Slots are the variables that `opt -passes=mem2reg` promotes at first sight (LLVM's
//! `isAllocaPromotable`): each `alloca` of the entry block that is only loaded and stored, whole, in its
//! own type, and not `volatile`. (After promotion LLVM looks again, and finds variables whose address
//! was in one of the others; these stay out.) Markers of lifetime and debug information do not count.
//! All else that instructions do is left out; all terminators but `callbr` and those of exceptions on
//! Windows are understood.
//!
//! It is a reader of lines, not of the language: text that LLVM has not written can give nonsense, but
//! no panic. One function at a time is in memory.

mod syntax;

use std::collections::HashMap;
use std::iter::Enumerate;
use std::str::Lines;

use slotvm_ssa::graphs::cfg::Cfg;

use self::syntax::{Name, names, operand, quoted_name, skip_type};
use crate::slot_graph::{Access, SlotGraph, Written};

/// A function of a module.
#[derive(Clone, Debug)]
pub struct Imported<'t> {
    /// Its graph. Blocks and slots are in the order of the text. What a write writes is new unless a read
    /// gave it.
    pub graph: SlotGraph,
    /// The names of the slots.
    pub slots: Vec<&'t str>,
    /// Values of the writes, in the order of the text: LLVM's operands. The same operand of the same type is the same
    /// value.
    pub written: Vec<&'t str>,
    /// The phis that are there already.
    pub n_phis: usize,
}

/// Error of a text that cannot be imported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {rule}")]
pub struct LlvmIrError {
    /// The line, from 1.
    pub line: usize,
    /// The rule that it breaks.
    pub rule: String,
}

/// The functions that a module defines, in the order of its text.
pub fn functions(text: &str) -> Functions<'_> {
    Functions { lines: text.lines().enumerate() }
}

/// The functions that a module defines: see [`functions`]. It ends after an error.
#[derive(Clone, Debug)]
pub struct Functions<'t> {
    lines: Enumerate<Lines<'t>>,
}

impl<'t> Iterator for Functions<'t> {
    type Item = Result<Imported<'t>, LlvmIrError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (start, header) = self.lines.find(|(_, line)| line.starts_with("define "))?;
        let function = self.function(start + 1, header);
        if function.is_err() {
            self.lines = "".lines().enumerate();
        }
        Some(function)
    }
}

impl<'t> Functions<'t> {
    fn function(&mut self, start: usize, header: &'t str) -> Result<Imported<'t>, LlvmIrError> {
        let at = |line, rule: &str| LlvmIrError { line, rule: rule.to_owned() };
        let name = header.split_once('@').and_then(|(_, rest)| quoted_name(rest));
        let name = name.ok_or_else(|| at(start, "expected the name of the function"))?;
        let mut reader = Reader::default();
        for (i, line) in self.lines.by_ref() {
            if line == "}" {
                return reader.finish(name);
            }
            reader.line(line, i + 1).map_err(|rule| at(i + 1, &rule))?;
        }
        Err(at(start, "the function does not end"))
    }
}

/// A variable that may be a slot.
#[derive(Copy, Clone, Debug)]
struct Variable<'t> {
    name: &'t str,
    ty: &'t str,
    is_slot: bool,
}

/// A load or store of a whole variable.
#[derive(Copy, Clone, Debug)]
enum Direct<'t> {
    Load { result: &'t str },
    Store { value: &'t str },
}

/// A function being read.
#[derive(Debug, Default)]
struct Reader<'t> {
    variables: Vec<Variable<'t>>,
    variable_numbers: HashMap<&'t str, usize>,
    blocks: HashMap<&'t str, u32>,
    /// Start of the accesses and targets of each block.
    starts: Vec<(usize, usize)>,
    accesses: Vec<(usize, Direct<'t>)>,
    /// The names of targets, and the lines where they stand.
    targets: Vec<(&'t str, usize)>,
    n_phis: usize,
}

impl<'t> Reader<'t> {
    fn line(&mut self, line: &'t str, number: usize) -> Result<(), String> {
        if line.is_empty() || line.starts_with(';') {
            return Ok(());
        }
        let inst = line.trim_start();
        if inst.len() == line.len() {
            let name = quoted_name(line).filter(|name| line[name.len()..].starts_with(':'));
            return self.start_block(name.ok_or("expected a label or `}`")?);
        }
        if self.starts.is_empty() {
            // An entry block without a name, which nothing goes to.
            self.start_block("")?;
        }
        if inst.starts_with("#dbg") || inst.contains("@llvm.dbg.") {
            return Ok(());
        }
        let (result, body) = result_and_body(inst);
        match (body.split(' ').next(), result) {
            (Some("alloca"), Some(result)) => self.alloca(result, body)?,
            (Some("load"), Some(result)) if self.load(result, body).is_some() => {}
            (Some("store"), None) if self.store(body).is_some() => {}
            (Some(word @ ("callbr" | "catchswitch" | "catchret" | "cleanupret")), _) => {
                return Err(format!("`{word}` is not supported"));
            }
            (Some("phi"), _) => {
                self.n_phis += 1;
                self.use_names(body, number);
            }
            _ if body.contains("@llvm.lifetime.") => {}
            _ => self.use_names(body, number),
        }
        Ok(())
    }

    fn start_block(&mut self, name: &'t str) -> Result<(), String> {
        let number = self.starts.len() as u32;
        self.starts.push((self.accesses.len(), self.targets.len()));
        match self.blocks.insert(name, number) {
            Some(_) => Err(format!("there are two blocks `{name}`")),
            None => Ok(()),
        }
    }

    fn alloca(&mut self, name: &'t str, body: &'t str) -> Result<(), String> {
        let ty = body["alloca ".len()..].trim_start_matches("inalloca ");
        let n_type = skip_type(ty).ok_or("expected a type")?;
        // Those of other blocks are not promoted.
        let is_slot = self.starts.len() == 1;
        self.variable_numbers.insert(name, self.variables.len());
        self.variables.push(Variable { name, ty: &ty[..n_type], is_slot });
        Ok(())
    }

    /// A load of the form `load T, ptr OPERAND, …`; `None` if it is another one.
    fn load(&mut self, result: &'t str, body: &'t str) -> Option<()> {
        let body = body.strip_prefix("load ")?;
        let (ty, rest) = typed(body.strip_prefix("atomic ").unwrap_or(body))?;
        let (_, rest) = typed(rest.strip_prefix(", ")?)?;
        let pointer = operand(rest.strip_prefix(' ')?);
        self.access(pointer, ty, Direct::Load { result });
        Some(())
    }

    /// A store of the form `store T VALUE, ptr OPERAND, …`; `None` if it is another one.
    fn store(&mut self, body: &'t str) -> Option<()> {
        let body = body.strip_prefix("store ")?;
        let (ty, rest) = typed(body.strip_prefix("atomic ").unwrap_or(body))?;
        let rest = rest.strip_prefix(' ')?;
        let value = operand(rest);
        let (_, rest) = typed(rest[value.len()..].strip_prefix(", ")?)?;
        let pointer = operand(rest.strip_prefix(' ')?);
        if let Some(variable) = self.variable(value) {
            self.variables[variable].is_slot = false;
        }
        self.access(pointer, ty, Direct::Store { value });
        Some(())
    }

    /// An access through a pointer, which may be a variable.
    fn access(&mut self, pointer: &str, ty: &str, direct: Direct<'t>) {
        if let Some(number) = self.variable(pointer) {
            let variable = &mut self.variables[number];
            variable.is_slot &= variable.ty == ty;
            self.accesses.push((number, direct));
        }
    }

    /// The variable that an operand is.
    fn variable(&self, operand: &str) -> Option<usize> {
        self.variable_numbers.get(operand.strip_prefix('%')?).copied()
    }

    /// Any other instruction: variables that it names are no slots, and labels are targets.
    fn use_names(&mut self, body: &'t str, line: usize) {
        for name in names(body) {
            match name {
                Name::Label(label) => self.targets.push((label, line)),
                Name::Value(value) => {
                    if let Some(&number) = self.variable_numbers.get(value) {
                        self.variables[number].is_slot = false;
                    }
                }
            }
        }
    }

    fn finish(self, name: &str) -> Result<Imported<'t>, LlvmIrError> {
        let mut slot_numbers = Vec::with_capacity(self.variables.len());
        let mut slots = Vec::new();
        for variable in &self.variables {
            slot_numbers.push(variable.is_slot.then_some(slots.len() as u32));
            slots.extend(variable.is_slot.then_some(variable.name));
        }
        let accesses = self.accesses.iter();
        let accesses =
            accesses.map(|&(variable, direct)| slot_numbers[variable].map(|slot| (slot, direct)));
        let accesses: Vec<Option<(u32, Direct<'t>)>> = accesses.collect();
        let results = accesses.iter().filter_map(|access| match access {
            Some((_, Direct::Load { result })) => Some(*result),
            _ => None,
        });
        let reads: HashMap<&str, u32> = results.zip(0..).collect();

        let mut written = Vec::new();
        let mut access_lists = vec![Vec::new(); self.starts.len()];
        let mut succ_lists = vec![Vec::new(); self.starts.len()];
        for (block, &(first_access, first_target)) in self.starts.iter().enumerate() {
            let ends = (self.accesses.len(), self.targets.len());
            let (end_access, end_target) = *self.starts.get(block + 1).unwrap_or(&ends);
            for &(slot, direct) in accesses[first_access..end_access].iter().flatten() {
                access_lists[block].push(match direct {
                    Direct::Load { .. } => Access::Read { slot },
                    Direct::Store { value } => {
                        written.push(value);
                        let read = value.strip_prefix('%').and_then(|value| reads.get(value));
                        let value = read.map_or(Written::New, |&read| Written::Read(read));
                        Access::Write { slot, value }
                    }
                });
            }
            for &(target, line) in &self.targets[first_target..end_target] {
                let error = |rule| LlvmIrError { line, rule };
                match self.blocks.get(target) {
                    None => return Err(error(format!("unknown block `{target}`"))),
                    Some(0) => return Err(error("no edge goes to the entry".to_owned())),
                    Some(&target) => succ_lists[block].push(target),
                }
            }
        }
        if succ_lists.is_empty() {
            return Err(LlvmIrError { line: 1, rule: format!("the function {name} has no block") });
        }
        let cfg = Cfg::new(0, succ_lists);
        let n_slots = slots.len() as u32;
        let graph = SlotGraph::new(one_word(name), n_slots, cfg, access_lists);
        Ok(Imported { graph, slots, written, n_phis: self.n_phis })
    }
}

/// The name of what an instruction computes, if it has one, and what follows the `=`.
fn result_and_body(inst: &str) -> (Option<&str>, &str) {
    let parts = || {
        let rest = inst.strip_prefix('%')?;
        let result = quoted_name(rest)?;
        Some((result, rest[result.len()..].strip_prefix(" = ")?))
    };
    parts().map_or((None, inst), |(result, body)| (Some(result), body))
}

/// A type, and what follows it.
fn typed(text: &str) -> Option<(&str, &str)> {
    Some(text.split_at(skip_type(text)?))
}

/// A name that the text format of graphs takes.
fn one_word(name: &str) -> String {
    name.replace(|c: char| c.is_whitespace() || c == '#', "_")
}

#[cfg(test)]
mod tests;
