//! The state of an instance, and the instructions on whole memories and on tables.

use std::ops::Range;

use slotvm_bytecode::cost::{PIECE_BYTES_MAX, PIECE_ELEMS_MAX};
use slotvm_bytecode::module::{ImportKind, MemoryType, PAGE_BYTES, TableType};
use slotvm_bytecode::{Imm, Op, TrapCode, VerifiedModule};

use super::instantiate::{const_value, elem_values};
use super::{Host, Imports, Options};

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The elements, as cells.
    pub elems: Vec<u64>,
    /// The maximum number of elements.
    pub(super) elems_max: u32,
}

/// The state that instructions read and write.
pub(super) struct Contents<'a> {
    pub(super) memory: Vec<u8>,
    memory_pages_max: u32,
    pub(super) globals: Vec<u128>,
    pub(super) tables: Vec<Table>,
    /// The element segments; empty when dropped.
    pub(super) elems: Vec<Vec<u64>>,
    /// Whether each data segment was dropped.
    pub(super) datas_dropped: Vec<bool>,
    pub(super) fuel: Option<u64>,
    pub(super) stack_cells: Option<u64>,
    pub(super) polls: Option<u64>,
    frame_base: u32,
    pub(super) frame_sp: u32,
    pub(super) host: Host<'a>,
    pub(super) options: Options,
}

impl<'a> Contents<'a> {
    pub(super) fn new(
        module: &VerifiedModule,
        imports: Imports<'a>,
        options: Options,
    ) -> Contents<'a> {
        let mut globals = imports.globals;
        let n_imported = module.module().imports.iter();
        let n_imported = n_imported.filter(|import| matches!(import.kind, ImportKind::Global(_)));
        globals.resize(n_imported.count(), 0);
        for global in &module.module().globals {
            globals.push(const_value(&global.init, &globals));
        }
        let elems = module.module().elems.iter();
        let elems = elems.map(|elem| elem_values(elem, &globals)).collect();
        let memory = module.memories().first().copied();
        let memory = memory.unwrap_or(MemoryType { min: 0, max: Some(0) });
        let frame_stack = module.module().frame_stack;
        let (frame_base, frame_bytes) = frame_stack.map_or((0, 0), |f| (f.base, f.bytes));
        Contents {
            memory: vec![0; memory.min as usize * PAGE_BYTES as usize],
            memory_pages_max: memory.max.unwrap_or(u32::MAX).min(options.memory_pages_max),
            tables: module.tables().iter().map(|table| new_table(table, &options)).collect(),
            globals,
            elems,
            datas_dropped: vec![false; module.module().datas.len()],
            fuel: options.fuel,
            stack_cells: options.stack_cells,
            polls: options.polls,
            frame_base,
            frame_sp: frame_base + frame_bytes,
            host: imports.host,
            options,
        }
    }

    /// Charges fuel, if there is a limit.
    pub(super) fn charge(&mut self, amount: u64) -> Result<(), TrapCode> {
        if let Some(fuel) = &mut self.fuel {
            *fuel = fuel.checked_sub(amount).ok_or(TrapCode::OutOfFuel)?;
        }
        Ok(())
    }

    /// Polls: continues, or traps with an interruption.
    pub(super) fn poll(&mut self) -> Result<(), TrapCode> {
        if let Some(polls) = &mut self.polls {
            *polls = polls.checked_sub(1).ok_or(TrapCode::Interrupted)?;
        }
        Ok(())
    }

    /// Does a bulk operation in pieces, with a poll between two of them: `each` receives the offset of each
    /// piece and its length, at most `piece_max`. `backwards` begins with the last piece.
    fn in_pieces(
        &mut self,
        len: u32,
        piece_max: u32,
        backwards: bool,
        mut each: impl FnMut(&mut Self, u32, u32),
    ) -> Result<(), TrapCode> {
        let piece_max = if self.polls.is_some() { piece_max } else { u32::MAX };
        let mut done = 0;
        while done < len {
            if done > 0 {
                self.poll()?;
            }
            let n = (len - done).min(piece_max);
            each(self, if backwards { len - done - n } else { done }, n);
            done += n;
        }
        Ok(())
    }

    /// Takes cells from the deterministic call stack, if there is one.
    pub(super) fn push_cells(&mut self, n: u64) -> Result<(), TrapCode> {
        if let Some(cells) = &mut self.stack_cells {
            *cells = cells.checked_sub(n).ok_or(TrapCode::StackOverflow)?;
        }
        Ok(())
    }

    pub(super) fn pop_cells(&mut self, n: u64) {
        if let Some(cells) = &mut self.stack_cells {
            *cells += n;
        }
    }

    /// Takes bytes from the frame stack, which grows downwards; returns their address.
    pub(super) fn push_frame(&mut self, bytes: u32) -> Result<u64, TrapCode> {
        if self.frame_sp - self.frame_base < bytes {
            return Err(TrapCode::FrameStackOverflow);
        }
        self.frame_sp -= bytes;
        let start = self.frame_sp as usize;
        self.memory[start..start + bytes as usize].fill(0);
        Ok(self.frame_sp.into())
    }

    pub(super) fn pop_frame(&mut self, bytes: u32) {
        self.frame_sp += bytes;
    }

    /// Runs an instruction on the whole memory.
    pub(super) fn memory_op(
        &mut self,
        module: &VerifiedModule,
        op: Op,
        imm: Imm,
        operands: &[u128],
    ) -> Result<Option<u128>, TrapCode> {
        let arg = |i: usize| operands[i] as u32;
        let bytes =
            |start, len, total| in_bounds(start, len, total).ok_or(TrapCode::MemoryOutOfBounds);
        let total = self.memory.len();
        match op {
            Op::MemorySize => return Ok(Some(self.pages().into())),
            Op::MemoryGrow => return Ok(Some(self.grow_memory(arg(0)).into())),
            Op::MemoryFill => {
                let dst = bytes(arg(0), arg(2), total)?.start;
                self.in_pieces(arg(2), PIECE_BYTES_MAX, false, |state, at, n| {
                    state.memory[dst + at as usize..][..n as usize].fill(arg(1) as u8);
                })?;
            }
            Op::MemoryCopy => {
                let dst = bytes(arg(0), arg(2), total)?.start;
                let src = bytes(arg(1), arg(2), total)?.start;
                self.in_pieces(arg(2), PIECE_BYTES_MAX, dst > src, |state, at, n| {
                    let src = src + at as usize..src + (at + n) as usize;
                    state.memory.copy_within(src, dst + at as usize);
                })?;
            }
            Op::MemoryInit => {
                let is_dropped = self.datas_dropped[imm.low() as usize];
                let data = &module.module().datas[imm.low() as usize].bytes;
                let data: &[u8] = if is_dropped { &[] } else { data };
                let src = bytes(arg(1), arg(2), data.len())?;
                let dst = bytes(arg(0), arg(2), total)?.start;
                self.in_pieces(arg(2), PIECE_BYTES_MAX, false, |state, at, n| {
                    let piece = &data[src.start + at as usize..][..n as usize];
                    state.memory[dst + at as usize..][..n as usize].copy_from_slice(piece);
                })?;
            }
            Op::DataDrop => self.datas_dropped[imm.low() as usize] = true,
            _ => unreachable!("{} is not about memory", op.mnemonic()),
        }
        Ok(None)
    }

    fn pages(&self) -> u32 {
        (self.memory.len() as u64 / PAGE_BYTES) as u32
    }

    fn grow_memory(&mut self, n: u32) -> u32 {
        let old = self.pages();
        match old.checked_add(n).filter(|&new| new <= self.memory_pages_max) {
            Some(_) if n == 0 => old,
            Some(new) => {
                // Fresh zeros from the system cost nothing until they are touched.
                let mut memory = vec![0; new as usize * PAGE_BYTES as usize];
                memory[..self.memory.len()].copy_from_slice(&self.memory);
                self.memory = memory;
                old
            }
            None => u32::MAX,
        }
    }

    /// Runs an instruction on tables.
    pub(super) fn table_op(
        &mut self,
        op: Op,
        imm: Imm,
        operands: &[u128],
    ) -> Result<Option<u128>, TrapCode> {
        let arg = |i: usize| operands[i] as u32;
        let elems =
            |start, len, total| in_bounds(start, len, total).ok_or(TrapCode::TableOutOfBounds);
        let first = imm.low() as usize;
        match op {
            Op::TableGet => return self.element(first, arg(0)).map(|cell| Some(cell.into())),
            Op::TableSet => {
                let table = &mut self.tables[first].elems;
                *table.get_mut(arg(0) as usize).ok_or(TrapCode::TableOutOfBounds)? =
                    operands[1] as u64;
            }
            Op::TableSize => return Ok(Some(self.tables[first].elems.len() as u128)),
            Op::TableGrow => {
                let old = self.tables[first].grow(arg(1));
                if old != u32::MAX && operands[0] != 0 {
                    self.fill_table(first, old, arg(1), operands[0] as u64)?;
                }
                return Ok(Some(old.into()));
            }
            Op::TableFill => {
                elems(arg(0), arg(2), self.tables[first].elems.len())?;
                self.fill_table(first, arg(0), arg(2), operands[1] as u64)?;
            }
            Op::TableCopy => {
                let source = &self.tables[imm.high() as usize].elems;
                let src = elems(arg(1), arg(2), source.len())?;
                let dst = elems(arg(0), arg(2), self.tables[first].elems.len())?.start;
                // All is read before anything is written.
                let copied = source[src].to_vec();
                self.in_pieces(arg(2), PIECE_ELEMS_MAX, arg(0) > arg(1), |state, at, n| {
                    let piece = &copied[at as usize..][..n as usize];
                    state.tables[first].elems[dst + at as usize..][..n as usize]
                        .copy_from_slice(piece);
                })?;
            }
            Op::TableInit => {
                let table = imm.high() as usize;
                let src = elems(arg(1), arg(2), self.elems[first].len())?.start;
                let dst = elems(arg(0), arg(2), self.tables[table].elems.len())?.start;
                self.in_pieces(arg(2), PIECE_ELEMS_MAX, false, |state, at, n| {
                    let piece = &state.elems[first][src + at as usize..][..n as usize];
                    state.tables[table].elems[dst + at as usize..][..n as usize]
                        .copy_from_slice(piece);
                })?;
            }
            Op::ElemDrop => self.elems[first].clear(),
            _ => unreachable!("{} is not about tables", op.mnemonic()),
        }
        Ok(None)
    }

    /// Fills a range of a table, which is in bounds.
    fn fill_table(&mut self, table: usize, dst: u32, len: u32, value: u64) -> Result<(), TrapCode> {
        self.in_pieces(len, PIECE_ELEMS_MAX, false, |state, at, n| {
            state.tables[table].elems[(dst + at) as usize..][..n as usize].fill(value);
        })
    }

    /// An element of a table.
    pub(super) fn element(&self, table: usize, index: u32) -> Result<u64, TrapCode> {
        let elems = &self.tables[table].elems;
        elems.get(index as usize).copied().ok_or(TrapCode::TableOutOfBounds)
    }
}

fn new_table(ty: &TableType, options: &Options) -> Table {
    let elems_max = ty.max.unwrap_or(u32::MAX).min(options.table_elems_max);
    Table { elems: vec![0; ty.min as usize], elems_max }
}

impl Table {
    /// Adds null references.
    fn grow(&mut self, n: u32) -> u32 {
        let old = self.elems.len() as u32;
        match old.checked_add(n).filter(|&new| new <= self.elems_max) {
            Some(new) => {
                self.elems.resize(new as usize, 0);
                old
            }
            None => u32::MAX,
        }
    }
}

/// The range of `len` items from `start` on, if it lies inside `total` items.
pub(super) fn in_bounds(start: u32, len: u32, total: usize) -> Option<Range<usize>> {
    let (start, len) = (start as usize, len as usize);
    (start.checked_add(len)? <= total).then(|| start..start + len)
}
