//! The opcode table, the single source of the instruction set.
//!
//! [`for_each_op!`](crate::for_each_op) passes all rows to a macro of the caller's choice. Encoding,
//! decoding, the text form, the verifier's fixed signatures, the reference (`vmrun ops`) and the IR derive
//! from it. A new opcode is one row here, and its semantics in the interpreter, the evaluator and the
//! lowering. The compiler reports few of the places that are missing; the guide (`docs/guide/src/opcode.md`) lists them
//! with the tests that find them.
//!
//! A row is `code Variant "mnemonic" ImmKind {signature} Effect Origin "doc";`. All parts are required:
//!
//! * A signature lists the operand types and the result types, deepest first, with commas between results. An operation on lanes names
//!   them, such as `I8x16`, in place of `V128`, see [`Lanes`]. A float result is `exact` or `nan`, see
//!   [`Op::makes_nan`]. `special` marks the few opcodes whose types depend on an immediate or on the operand
//!   stack; [`crate::typing`] types them one by one.
//! * The immediates of a load or store include the bytes that it accesses: `Mem(1 signed)`, see [`Access`],
//!   or `Mem(8 extends 1 signed)`, see [`VectorPart`].
//! * The origin is `Wasm` if WebAssembly has an instruction with the same name and immediates, so that the
//!   import takes it unchanged; else `Own`.

#[macro_use]
mod access;
#[macro_use]
mod signature;

pub use access::{Access, VectorAccess, VectorPart};
pub use signature::{Lanes, Signature};

use crate::types::ValType;
use access::Accessed;
use signature::{Nan, Row, Word};

/// Calls the macro `$m` with all rows of the opcode table.
#[macro_export]
macro_rules! for_each_op {
    ($m:ident) => { $m! {
        // Control flow.
        0x00 Unreachable "unreachable" None {special} Control Own "Traps.";
        0x01 Nop "nop" None {->} Stack Own "Does nothing.";
        0x02 Br "br" Label {special} Control Own "Branches to the label. The operand stack has the shape of the label.";
        0x03 BrIf "br_if" Label {special} Control Own "Pops an `i32` and branches to the label if it is not zero. The rest of the operand stack has the shape of the label.";
        0x04 BrTable "br_table" Labels {special} Control Own "Pops an `i32` as an unsigned index and branches to the label with that index, or to the default if there is none. All labels have the same shape, that of the rest of the operand stack.";
        0x05 Return "return" None {special} Control Own "Returns the results from the top of the operand stack. Drops the operands below them.";
        0x06 Call "call" Func {special} Call Wasm "Pops the parameters, calls the function, pushes its results.";
        0x07 CallIndirect "call_indirect" TypeTable {special} Call Wasm "Pops an `i32` index into the table, then the parameters; calls the function there, which must have exactly that type.";
        0x08 ReturnCall "return_call" Func {special} Control Wasm "Tail-calls the function with the parameters on top of the operand stack. Drops the operands below them.";
        0x09 ReturnCallIndirect "return_call_indirect" TypeTable {special} Control Wasm "Pops an `i32` index into the table and tail-calls the function there, which must have exactly that type, with the parameters below the index. Drops the operands below them.";
        0x0a BrKeep "br_keep" LabelCount {special} Control Own "Branches to the label with the topmost `count` operands on top of the lowest operands, as many as the label's shape has below its topmost `count`. Drops the operands between.";
        0x0b Trap "trap" Number {special} Control Own "Traps with the number, which the module may have a message for.";
        // Operand stack. `a` is the deepest operand named.
        0x10 Drop "drop" None {special} Stack Wasm "Removes the top: `a` becomes nothing.";
        0x11 Dup "dup" None {special} Stack Own "Copies the top: `a` becomes `a a`.";
        0x12 Swap "swap" None {special} Stack Own "Exchanges the two topmost: `a b` becomes `b a`.";
        0x13 Over "over" None {special} Stack Own "Copies the second from the top: `a b` becomes `a b a`.";
        0x14 Rot "rot" None {special} Stack Own "Brings the third from the top to the top: `a b c` becomes `b c a`.";
        0x15 Select "select" None {special} Pure Wasm "Pops an `i32`, then `b` and `a` of the same type; pushes `a` if the `i32` is not zero, else `b`.";
        // Locals and globals.
        0x18 LocalGet "local.get" Local {special} Local Wasm "Pushes the local.";
        0x19 LocalSet "local.set" Local {special} Local Wasm "Pops a value into the local.";
        0x1a LocalTee "local.tee" Local {special} Local Wasm "Copies the top into the local.";
        0x1b LocalAddr "local.addr" Local {special} Local Own "Pushes the linear-memory address of the local, which is numeric and not a `v128`.";
        0x1c GlobalGet "global.get" Global {special} Read Wasm "Pushes the global.";
        0x1d GlobalSet "global.set" Global {special} Write Wasm "Pops a value into the mutable global.";
        // References and tables.
        0x20 RefNull "ref.null" RefType {special} Pure Wasm "Pushes the null reference of the type.";
        0x21 RefIsNull "ref.is_null" None {special} Pure Wasm "Pops a reference, pushes 1 if it is null, else 0.";
        0x22 RefFunc "ref.func" Func {-> FuncRef} Read Wasm "Pushes a reference to the function.";
        0x23 TableGet "table.get" Table {special} Read Wasm "Pops an index, pushes the element.";
        0x24 TableSet "table.set" Table {special} Write Wasm "Pops an element, then an index, and stores the element there.";
        0x25 TableSize "table.size" Table {-> I32} Read Wasm "Pushes the number of elements.";
        0x26 TableGrow "table.grow" Table {special} Write Wasm "Pops a number of elements, then the element to fill them with; grows the table and pushes its old size, or -1 if it cannot grow.";
        0x27 TableFill "table.fill" Table {special} Write Wasm "Pops a length, an element and an index; stores the element that many times.";
        0x28 TableCopy "table.copy" TableTable {I32 I32 I32 ->} Write Wasm "Pops a length, a source index and a destination index; copies as if through an intermediate buffer.";
        0x29 TableInit "table.init" ElemTable {I32 I32 I32 ->} Write Wasm "Pops a length, an index into the element segment and an index into the table; copies from the segment.";
        0x2a ElemDrop "elem.drop" Elem {->} Write Wasm "Makes the element segment empty.";
        0x2b RefReinterpretI64 "ref.reinterpret_i64" None {I64 -> Ref} Pure Own "Makes a reference into the embedder's heap of its bits.";
        0x2c I64ReinterpretRef "i64.reinterpret_ref" None {Ref -> I64} Pure Own "Pushes the bits of a reference into the embedder's heap, which are those of the object until the next call.";
        // Constants.
        0x30 I32Const "i32.const" I32 {-> I32} Pure Wasm "Pushes the constant.";
        0x31 I64Const "i64.const" I64 {-> I64} Pure Wasm "Pushes the constant.";
        0x32 F32Const "f32.const" F32 {-> F32 exact} Pure Wasm "Pushes the constant.";
        0x33 F64Const "f64.const" F64 {-> F64 exact} Pure Wasm "Pushes the constant.";
        // Whole memory.
        0x38 MemorySize "memory.size" Memory {-> I32} Read Wasm "Pushes the size in pages of 64 KiB.";
        0x39 MemoryGrow "memory.grow" Memory {I32 -> I32} Write Wasm "Pops a number of pages to add; pushes the old size in pages, or -1 if the memory cannot grow.";
        0x3a MemoryFill "memory.fill" Memory {I32 I32 I32 ->} Write Wasm "Pops a length, a byte value and an address; fills the range with the byte.";
        0x3b MemoryCopy "memory.copy" MemoryMemory {I32 I32 I32 ->} Write Wasm "Pops a length, a source address and a destination address; copies as if through an intermediate buffer.";
        0x3c MemoryInit "memory.init" DataMemory {I32 I32 I32 ->} Write Wasm "Pops a length, an offset into the data segment and an address; copies from the segment.";
        0x3d DataDrop "data.drop" Data {->} Write Wasm "Makes the data segment empty.";
        // Memory accesses at `u64(address) + offset`.
        0x40 I32Load "i32.load" Mem(4) {I32 -> I32} Read Wasm "Pops an address; loads 4 bytes.";
        0x41 I64Load "i64.load" Mem(8) {I32 -> I64} Read Wasm "Pops an address; loads 8 bytes.";
        0x42 F32Load "f32.load" Mem(4) {I32 -> F32 exact} Read Wasm "Pops an address; loads 4 bytes.";
        0x43 F64Load "f64.load" Mem(8) {I32 -> F64 exact} Read Wasm "Pops an address; loads 8 bytes.";
        0x44 I32Load8S "i32.load8_s" Mem(1 signed) {I32 -> I32} Read Wasm "Pops an address; loads 1 byte, sign-extended.";
        0x45 I32Load8U "i32.load8_u" Mem(1 unsigned) {I32 -> I32} Read Wasm "Pops an address; loads 1 byte, zero-extended.";
        0x46 I32Load16S "i32.load16_s" Mem(2 signed) {I32 -> I32} Read Wasm "Pops an address; loads 2 bytes, sign-extended.";
        0x47 I32Load16U "i32.load16_u" Mem(2 unsigned) {I32 -> I32} Read Wasm "Pops an address; loads 2 bytes, zero-extended.";
        0x48 I64Load8S "i64.load8_s" Mem(1 signed) {I32 -> I64} Read Wasm "Pops an address; loads 1 byte, sign-extended.";
        0x49 I64Load8U "i64.load8_u" Mem(1 unsigned) {I32 -> I64} Read Wasm "Pops an address; loads 1 byte, zero-extended.";
        0x4a I64Load16S "i64.load16_s" Mem(2 signed) {I32 -> I64} Read Wasm "Pops an address; loads 2 bytes, sign-extended.";
        0x4b I64Load16U "i64.load16_u" Mem(2 unsigned) {I32 -> I64} Read Wasm "Pops an address; loads 2 bytes, zero-extended.";
        0x4c I64Load32S "i64.load32_s" Mem(4 signed) {I32 -> I64} Read Wasm "Pops an address; loads 4 bytes, sign-extended.";
        0x4d I64Load32U "i64.load32_u" Mem(4 unsigned) {I32 -> I64} Read Wasm "Pops an address; loads 4 bytes, zero-extended.";
        0x4e I32Store "i32.store" Mem(4) {I32 I32 ->} Write Wasm "Pops a value, then an address; stores its 4 bytes.";
        0x4f I64Store "i64.store" Mem(8) {I32 I64 ->} Write Wasm "Pops a value, then an address; stores its 8 bytes.";
        0x50 F32Store "f32.store" Mem(4) {I32 F32 ->} Write Wasm "Pops a value, then an address; stores its 4 bytes.";
        0x51 F64Store "f64.store" Mem(8) {I32 F64 ->} Write Wasm "Pops a value, then an address; stores its 8 bytes.";
        0x52 I32Store8 "i32.store8" Mem(1) {I32 I32 ->} Write Wasm "Pops a value, then an address; stores its low byte.";
        0x53 I32Store16 "i32.store16" Mem(2) {I32 I32 ->} Write Wasm "Pops a value, then an address; stores its low 2 bytes.";
        0x54 I64Store8 "i64.store8" Mem(1) {I32 I64 ->} Write Wasm "Pops a value, then an address; stores its low byte.";
        0x55 I64Store16 "i64.store16" Mem(2) {I32 I64 ->} Write Wasm "Pops a value, then an address; stores its low 2 bytes.";
        0x56 I64Store32 "i64.store32" Mem(4) {I32 I64 ->} Write Wasm "Pops a value, then an address; stores its low 4 bytes.";
        // Memory accesses at `u64(base) + (u64(index) << scale) + offset`, unsigned, without wrapping.
        0x58 I32LoadIndexed "i32.load_indexed" Indexed(4) {I32 I32 -> I32} Read Own "Pops an index and a base; loads 4 bytes.";
        0x59 I64LoadIndexed "i64.load_indexed" Indexed(8) {I32 I32 -> I64} Read Own "Pops an index and a base; loads 8 bytes.";
        0x5a F32LoadIndexed "f32.load_indexed" Indexed(4) {I32 I32 -> F32 exact} Read Own "Pops an index and a base; loads 4 bytes.";
        0x5b F64LoadIndexed "f64.load_indexed" Indexed(8) {I32 I32 -> F64 exact} Read Own "Pops an index and a base; loads 8 bytes.";
        0x5c I32Load8SIndexed "i32.load8_s_indexed" Indexed(1 signed) {I32 I32 -> I32} Read Own "Pops an index and a base; loads 1 byte, sign-extended.";
        0x5d I32Load8UIndexed "i32.load8_u_indexed" Indexed(1 unsigned) {I32 I32 -> I32} Read Own "Pops an index and a base; loads 1 byte, zero-extended.";
        0x5e I32Load16SIndexed "i32.load16_s_indexed" Indexed(2 signed) {I32 I32 -> I32} Read Own "Pops an index and a base; loads 2 bytes, sign-extended.";
        0x5f I32Load16UIndexed "i32.load16_u_indexed" Indexed(2 unsigned) {I32 I32 -> I32} Read Own "Pops an index and a base; loads 2 bytes, zero-extended.";
        0x60 I64Load8SIndexed "i64.load8_s_indexed" Indexed(1 signed) {I32 I32 -> I64} Read Own "Pops an index and a base; loads 1 byte, sign-extended.";
        0x61 I64Load8UIndexed "i64.load8_u_indexed" Indexed(1 unsigned) {I32 I32 -> I64} Read Own "Pops an index and a base; loads 1 byte, zero-extended.";
        0x62 I64Load16SIndexed "i64.load16_s_indexed" Indexed(2 signed) {I32 I32 -> I64} Read Own "Pops an index and a base; loads 2 bytes, sign-extended.";
        0x63 I64Load16UIndexed "i64.load16_u_indexed" Indexed(2 unsigned) {I32 I32 -> I64} Read Own "Pops an index and a base; loads 2 bytes, zero-extended.";
        0x64 I64Load32SIndexed "i64.load32_s_indexed" Indexed(4 signed) {I32 I32 -> I64} Read Own "Pops an index and a base; loads 4 bytes, sign-extended.";
        0x65 I64Load32UIndexed "i64.load32_u_indexed" Indexed(4 unsigned) {I32 I32 -> I64} Read Own "Pops an index and a base; loads 4 bytes, zero-extended.";
        0x66 I32StoreIndexed "i32.store_indexed" Indexed(4) {I32 I32 I32 ->} Write Own "Pops a value, an index and a base; stores its 4 bytes.";
        0x67 I64StoreIndexed "i64.store_indexed" Indexed(8) {I32 I32 I64 ->} Write Own "Pops a value, an index and a base; stores its 8 bytes.";
        0x68 F32StoreIndexed "f32.store_indexed" Indexed(4) {I32 I32 F32 ->} Write Own "Pops a value, an index and a base; stores its 4 bytes.";
        0x69 F64StoreIndexed "f64.store_indexed" Indexed(8) {I32 I32 F64 ->} Write Own "Pops a value, an index and a base; stores its 8 bytes.";
        0x6a I32Store8Indexed "i32.store8_indexed" Indexed(1) {I32 I32 I32 ->} Write Own "Pops a value, an index and a base; stores its low byte.";
        0x6b I32Store16Indexed "i32.store16_indexed" Indexed(2) {I32 I32 I32 ->} Write Own "Pops a value, an index and a base; stores its low 2 bytes.";
        0x6c I64Store8Indexed "i64.store8_indexed" Indexed(1) {I32 I32 I64 ->} Write Own "Pops a value, an index and a base; stores its low byte.";
        0x6d I64Store16Indexed "i64.store16_indexed" Indexed(2) {I32 I32 I64 ->} Write Own "Pops a value, an index and a base; stores its low 2 bytes.";
        0x6e I64Store32Indexed "i64.store32_indexed" Indexed(4) {I32 I32 I64 ->} Write Own "Pops a value, an index and a base; stores its low 4 bytes.";
        // Numbers. The semantics are those of WebAssembly; [`crate::numeric`] computes them.
        0x70 I32Eqz "i32.eqz" None {I32 -> I32} Pure Wasm "Tests for zero.";
        0x71 I32Eq "i32.eq" None {I32 I32 -> I32} Pure Wasm "Equal.";
        0x72 I32Ne "i32.ne" None {I32 I32 -> I32} Pure Wasm "Not equal.";
        0x73 I32LtS "i32.lt_s" None {I32 I32 -> I32} Pure Wasm "Less than, signed.";
        0x74 I32LtU "i32.lt_u" None {I32 I32 -> I32} Pure Wasm "Less than, unsigned.";
        0x75 I32GtS "i32.gt_s" None {I32 I32 -> I32} Pure Wasm "Greater than, signed.";
        0x76 I32GtU "i32.gt_u" None {I32 I32 -> I32} Pure Wasm "Greater than, unsigned.";
        0x77 I32LeS "i32.le_s" None {I32 I32 -> I32} Pure Wasm "Less or equal, signed.";
        0x78 I32LeU "i32.le_u" None {I32 I32 -> I32} Pure Wasm "Less or equal, unsigned.";
        0x79 I32GeS "i32.ge_s" None {I32 I32 -> I32} Pure Wasm "Greater or equal, signed.";
        0x7a I32GeU "i32.ge_u" None {I32 I32 -> I32} Pure Wasm "Greater or equal, unsigned.";
        0x7b I64Eqz "i64.eqz" None {I64 -> I32} Pure Wasm "Tests for zero.";
        0x7c I64Eq "i64.eq" None {I64 I64 -> I32} Pure Wasm "Equal.";
        0x7d I64Ne "i64.ne" None {I64 I64 -> I32} Pure Wasm "Not equal.";
        0x7e I64LtS "i64.lt_s" None {I64 I64 -> I32} Pure Wasm "Less than, signed.";
        0x7f I64LtU "i64.lt_u" None {I64 I64 -> I32} Pure Wasm "Less than, unsigned.";
        0x80 I64GtS "i64.gt_s" None {I64 I64 -> I32} Pure Wasm "Greater than, signed.";
        0x81 I64GtU "i64.gt_u" None {I64 I64 -> I32} Pure Wasm "Greater than, unsigned.";
        0x82 I64LeS "i64.le_s" None {I64 I64 -> I32} Pure Wasm "Less or equal, signed.";
        0x83 I64LeU "i64.le_u" None {I64 I64 -> I32} Pure Wasm "Less or equal, unsigned.";
        0x84 I64GeS "i64.ge_s" None {I64 I64 -> I32} Pure Wasm "Greater or equal, signed.";
        0x85 I64GeU "i64.ge_u" None {I64 I64 -> I32} Pure Wasm "Greater or equal, unsigned.";
        0x86 F32Eq "f32.eq" None {F32 F32 -> I32} Pure Wasm "Equal.";
        0x87 F32Ne "f32.ne" None {F32 F32 -> I32} Pure Wasm "Not equal or unordered.";
        0x88 F32Lt "f32.lt" None {F32 F32 -> I32} Pure Wasm "Less than.";
        0x89 F32Gt "f32.gt" None {F32 F32 -> I32} Pure Wasm "Greater than.";
        0x8a F32Le "f32.le" None {F32 F32 -> I32} Pure Wasm "Less or equal.";
        0x8b F32Ge "f32.ge" None {F32 F32 -> I32} Pure Wasm "Greater or equal.";
        0x8c F64Eq "f64.eq" None {F64 F64 -> I32} Pure Wasm "Equal.";
        0x8d F64Ne "f64.ne" None {F64 F64 -> I32} Pure Wasm "Not equal or unordered.";
        0x8e F64Lt "f64.lt" None {F64 F64 -> I32} Pure Wasm "Less than.";
        0x8f F64Gt "f64.gt" None {F64 F64 -> I32} Pure Wasm "Greater than.";
        0x90 F64Le "f64.le" None {F64 F64 -> I32} Pure Wasm "Less or equal.";
        0x91 F64Ge "f64.ge" None {F64 F64 -> I32} Pure Wasm "Greater or equal.";
        0x92 I32Clz "i32.clz" None {I32 -> I32} Pure Wasm "Counts leading zero bits.";
        0x93 I32Ctz "i32.ctz" None {I32 -> I32} Pure Wasm "Counts trailing zero bits.";
        0x94 I32Popcnt "i32.popcnt" None {I32 -> I32} Pure Wasm "Counts one bits.";
        0x95 I32Add "i32.add" None {I32 I32 -> I32} Pure Wasm "Adds, wrapping.";
        0x96 I32Sub "i32.sub" None {I32 I32 -> I32} Pure Wasm "Subtracts, wrapping.";
        0x97 I32Mul "i32.mul" None {I32 I32 -> I32} Pure Wasm "Multiplies, wrapping.";
        0x98 I32DivS "i32.div_s" None {I32 I32 -> I32} Trap Wasm "Divides, signed, towards zero; traps on zero and on overflow.";
        0x99 I32DivU "i32.div_u" None {I32 I32 -> I32} Trap Wasm "Divides, unsigned; traps on zero.";
        0x9a I32RemS "i32.rem_s" None {I32 I32 -> I32} Trap Wasm "Remainder with the sign of the dividend; traps on zero.";
        0x9b I32RemU "i32.rem_u" None {I32 I32 -> I32} Trap Wasm "Remainder, unsigned; traps on zero.";
        0x9c I32And "i32.and" None {I32 I32 -> I32} Pure Wasm "Bitwise and.";
        0x9d I32Or "i32.or" None {I32 I32 -> I32} Pure Wasm "Bitwise or.";
        0x9e I32Xor "i32.xor" None {I32 I32 -> I32} Pure Wasm "Bitwise exclusive or.";
        0x9f I32Shl "i32.shl" None {I32 I32 -> I32} Pure Wasm "Shifts left by the count modulo the width.";
        0xa0 I32ShrS "i32.shr_s" None {I32 I32 -> I32} Pure Wasm "Shifts right, filling with the sign, by the count modulo the width.";
        0xa1 I32ShrU "i32.shr_u" None {I32 I32 -> I32} Pure Wasm "Shifts right, filling with zero, by the count modulo the width.";
        0xa2 I32Rotl "i32.rotl" None {I32 I32 -> I32} Pure Wasm "Rotates left.";
        0xa3 I32Rotr "i32.rotr" None {I32 I32 -> I32} Pure Wasm "Rotates right.";
        0xa4 I64Clz "i64.clz" None {I64 -> I64} Pure Wasm "Counts leading zero bits.";
        0xa5 I64Ctz "i64.ctz" None {I64 -> I64} Pure Wasm "Counts trailing zero bits.";
        0xa6 I64Popcnt "i64.popcnt" None {I64 -> I64} Pure Wasm "Counts one bits.";
        0xa7 I64Add "i64.add" None {I64 I64 -> I64} Pure Wasm "Adds, wrapping.";
        0xa8 I64Sub "i64.sub" None {I64 I64 -> I64} Pure Wasm "Subtracts, wrapping.";
        0xa9 I64Mul "i64.mul" None {I64 I64 -> I64} Pure Wasm "Multiplies, wrapping.";
        0xaa I64DivS "i64.div_s" None {I64 I64 -> I64} Trap Wasm "Divides, signed, towards zero; traps on zero and on overflow.";
        0xab I64DivU "i64.div_u" None {I64 I64 -> I64} Trap Wasm "Divides, unsigned; traps on zero.";
        0xac I64RemS "i64.rem_s" None {I64 I64 -> I64} Trap Wasm "Remainder with the sign of the dividend; traps on zero.";
        0xad I64RemU "i64.rem_u" None {I64 I64 -> I64} Trap Wasm "Remainder, unsigned; traps on zero.";
        0xae I64And "i64.and" None {I64 I64 -> I64} Pure Wasm "Bitwise and.";
        0xaf I64Or "i64.or" None {I64 I64 -> I64} Pure Wasm "Bitwise or.";
        0xb0 I64Xor "i64.xor" None {I64 I64 -> I64} Pure Wasm "Bitwise exclusive or.";
        0xb1 I64Shl "i64.shl" None {I64 I64 -> I64} Pure Wasm "Shifts left by the count modulo the width.";
        0xb2 I64ShrS "i64.shr_s" None {I64 I64 -> I64} Pure Wasm "Shifts right, filling with the sign, by the count modulo the width.";
        0xb3 I64ShrU "i64.shr_u" None {I64 I64 -> I64} Pure Wasm "Shifts right, filling with zero, by the count modulo the width.";
        0xb4 I64Rotl "i64.rotl" None {I64 I64 -> I64} Pure Wasm "Rotates left.";
        0xb5 I64Rotr "i64.rotr" None {I64 I64 -> I64} Pure Wasm "Rotates right.";
        0xb6 F32Abs "f32.abs" None {F32 -> F32 exact} Pure Wasm "Clears the sign.";
        0xb7 F32Neg "f32.neg" None {F32 -> F32 exact} Pure Wasm "Flips the sign.";
        0xb8 F32Ceil "f32.ceil" None {F32 -> F32 nan} Pure Wasm "Rounds up.";
        0xb9 F32Floor "f32.floor" None {F32 -> F32 nan} Pure Wasm "Rounds down.";
        0xba F32Trunc "f32.trunc" None {F32 -> F32 nan} Pure Wasm "Rounds towards zero.";
        0xbb F32Nearest "f32.nearest" None {F32 -> F32 nan} Pure Wasm "Rounds to nearest, ties to even.";
        0xbc F32Sqrt "f32.sqrt" None {F32 -> F32 nan} Pure Wasm "Square root.";
        0xbd F32Add "f32.add" None {F32 F32 -> F32 nan} Pure Wasm "Adds.";
        0xbe F32Sub "f32.sub" None {F32 F32 -> F32 nan} Pure Wasm "Subtracts.";
        0xbf F32Mul "f32.mul" None {F32 F32 -> F32 nan} Pure Wasm "Multiplies.";
        0xc0 F32Div "f32.div" None {F32 F32 -> F32 nan} Pure Wasm "Divides.";
        0xc1 F32Min "f32.min" None {F32 F32 -> F32 nan} Pure Wasm "Minimum; NaN if either is NaN.";
        0xc2 F32Max "f32.max" None {F32 F32 -> F32 nan} Pure Wasm "Maximum; NaN if either is NaN.";
        0xc3 F32Copysign "f32.copysign" None {F32 F32 -> F32 exact} Pure Wasm "The first with the sign of the second.";
        0xc4 F64Abs "f64.abs" None {F64 -> F64 exact} Pure Wasm "Clears the sign.";
        0xc5 F64Neg "f64.neg" None {F64 -> F64 exact} Pure Wasm "Flips the sign.";
        0xc6 F64Ceil "f64.ceil" None {F64 -> F64 nan} Pure Wasm "Rounds up.";
        0xc7 F64Floor "f64.floor" None {F64 -> F64 nan} Pure Wasm "Rounds down.";
        0xc8 F64Trunc "f64.trunc" None {F64 -> F64 nan} Pure Wasm "Rounds towards zero.";
        0xc9 F64Nearest "f64.nearest" None {F64 -> F64 nan} Pure Wasm "Rounds to nearest, ties to even.";
        0xca F64Sqrt "f64.sqrt" None {F64 -> F64 nan} Pure Wasm "Square root.";
        0xcb F64Add "f64.add" None {F64 F64 -> F64 nan} Pure Wasm "Adds.";
        0xcc F64Sub "f64.sub" None {F64 F64 -> F64 nan} Pure Wasm "Subtracts.";
        0xcd F64Mul "f64.mul" None {F64 F64 -> F64 nan} Pure Wasm "Multiplies.";
        0xce F64Div "f64.div" None {F64 F64 -> F64 nan} Pure Wasm "Divides.";
        0xcf F64Min "f64.min" None {F64 F64 -> F64 nan} Pure Wasm "Minimum; NaN if either is NaN.";
        0xd0 F64Max "f64.max" None {F64 F64 -> F64 nan} Pure Wasm "Maximum; NaN if either is NaN.";
        0xd1 F64Copysign "f64.copysign" None {F64 F64 -> F64 exact} Pure Wasm "The first with the sign of the second.";
        0xd2 I32WrapI64 "i32.wrap_i64" None {I64 -> I32} Pure Wasm "The low 32 bits.";
        0xd3 I32TruncF32S "i32.trunc_f32_s" None {F32 -> I32} Trap Wasm "Converts towards zero, signed; traps on NaN and overflow.";
        0xd4 I32TruncF32U "i32.trunc_f32_u" None {F32 -> I32} Trap Wasm "Converts towards zero, unsigned; traps on NaN and overflow.";
        0xd5 I32TruncF64S "i32.trunc_f64_s" None {F64 -> I32} Trap Wasm "Converts towards zero, signed; traps on NaN and overflow.";
        0xd6 I32TruncF64U "i32.trunc_f64_u" None {F64 -> I32} Trap Wasm "Converts towards zero, unsigned; traps on NaN and overflow.";
        0xd7 I64ExtendI32S "i64.extend_i32_s" None {I32 -> I64} Pure Wasm "Sign-extends.";
        0xd8 I64ExtendI32U "i64.extend_i32_u" None {I32 -> I64} Pure Wasm "Zero-extends.";
        0xd9 I64TruncF32S "i64.trunc_f32_s" None {F32 -> I64} Trap Wasm "Converts towards zero, signed; traps on NaN and overflow.";
        0xda I64TruncF32U "i64.trunc_f32_u" None {F32 -> I64} Trap Wasm "Converts towards zero, unsigned; traps on NaN and overflow.";
        0xdb I64TruncF64S "i64.trunc_f64_s" None {F64 -> I64} Trap Wasm "Converts towards zero, signed; traps on NaN and overflow.";
        0xdc I64TruncF64U "i64.trunc_f64_u" None {F64 -> I64} Trap Wasm "Converts towards zero, unsigned; traps on NaN and overflow.";
        0xdd F32ConvertI32S "f32.convert_i32_s" None {I32 -> F32 exact} Pure Wasm "Converts from signed, rounding to nearest.";
        0xde F32ConvertI32U "f32.convert_i32_u" None {I32 -> F32 exact} Pure Wasm "Converts from unsigned, rounding to nearest.";
        0xdf F32ConvertI64S "f32.convert_i64_s" None {I64 -> F32 exact} Pure Wasm "Converts from signed, rounding to nearest.";
        0xe0 F32ConvertI64U "f32.convert_i64_u" None {I64 -> F32 exact} Pure Wasm "Converts from unsigned, rounding to nearest.";
        0xe1 F32DemoteF64 "f32.demote_f64" None {F64 -> F32 nan} Pure Wasm "Rounds to the narrower format.";
        0xe2 F64ConvertI32S "f64.convert_i32_s" None {I32 -> F64 exact} Pure Wasm "Converts from signed, rounding to nearest.";
        0xe3 F64ConvertI32U "f64.convert_i32_u" None {I32 -> F64 exact} Pure Wasm "Converts from unsigned, rounding to nearest.";
        0xe4 F64ConvertI64S "f64.convert_i64_s" None {I64 -> F64 exact} Pure Wasm "Converts from signed, rounding to nearest.";
        0xe5 F64ConvertI64U "f64.convert_i64_u" None {I64 -> F64 exact} Pure Wasm "Converts from unsigned, rounding to nearest.";
        0xe6 F64PromoteF32 "f64.promote_f32" None {F32 -> F64 nan} Pure Wasm "Converts to the wider format.";
        0xe7 I32ReinterpretF32 "i32.reinterpret_f32" None {F32 -> I32} Pure Wasm "Reinterprets the bits.";
        0xe8 I64ReinterpretF64 "i64.reinterpret_f64" None {F64 -> I64} Pure Wasm "Reinterprets the bits.";
        0xe9 F32ReinterpretI32 "f32.reinterpret_i32" None {I32 -> F32 exact} Pure Wasm "Reinterprets the bits.";
        0xea F64ReinterpretI64 "f64.reinterpret_i64" None {I64 -> F64 exact} Pure Wasm "Reinterprets the bits.";
        0xeb I32Extend8S "i32.extend8_s" None {I32 -> I32} Pure Wasm "Sign-extends the low 8 bits.";
        0xec I32Extend16S "i32.extend16_s" None {I32 -> I32} Pure Wasm "Sign-extends the low 16 bits.";
        0xed I64Extend8S "i64.extend8_s" None {I64 -> I64} Pure Wasm "Sign-extends the low 8 bits.";
        0xee I64Extend16S "i64.extend16_s" None {I64 -> I64} Pure Wasm "Sign-extends the low 16 bits.";
        0xef I64Extend32S "i64.extend32_s" None {I64 -> I64} Pure Wasm "Sign-extends the low 32 bits.";
        0xf0 I32TruncSatF32S "i32.trunc_sat_f32_s" None {F32 -> I32} Pure Wasm "Converts towards zero, signed; saturates, NaN becomes 0.";
        0xf1 I32TruncSatF32U "i32.trunc_sat_f32_u" None {F32 -> I32} Pure Wasm "Converts towards zero, unsigned; saturates, NaN becomes 0.";
        0xf2 I32TruncSatF64S "i32.trunc_sat_f64_s" None {F64 -> I32} Pure Wasm "Converts towards zero, signed; saturates, NaN becomes 0.";
        0xf3 I32TruncSatF64U "i32.trunc_sat_f64_u" None {F64 -> I32} Pure Wasm "Converts towards zero, unsigned; saturates, NaN becomes 0.";
        0xf4 I64TruncSatF32S "i64.trunc_sat_f32_s" None {F32 -> I64} Pure Wasm "Converts towards zero, signed; saturates, NaN becomes 0.";
        0xf5 I64TruncSatF32U "i64.trunc_sat_f32_u" None {F32 -> I64} Pure Wasm "Converts towards zero, unsigned; saturates, NaN becomes 0.";
        0xf6 I64TruncSatF64S "i64.trunc_sat_f64_s" None {F64 -> I64} Pure Wasm "Converts towards zero, signed; saturates, NaN becomes 0.";
        0xf7 I64TruncSatF64U "i64.trunc_sat_f64_u" None {F64 -> I64} Pure Wasm "Converts towards zero, unsigned; saturates, NaN becomes 0.";
        // Integers with two results. The first byte is 0xfc. [`crate::pairs`] computes them.
        0xfc13 I64Add128 "i64.add128" None {I64 I64 I64 I64 -> I64, I64} Pure Wasm "Adds numbers of 128 bits, wrapping. Each has two words, the low one deepest.";
        0xfc14 I64Sub128 "i64.sub128" None {I64 I64 I64 I64 -> I64, I64} Pure Wasm "Subtracts numbers of 128 bits, wrapping. Each has two words, the low one deepest.";
        0xfc15 I64MulWideS "i64.mul_wide_s" None {I64 I64 -> I64, I64} Pure Wasm "Multiplies, signed. Pushes the low word of the product, then the high word.";
        0xfc16 I64MulWideU "i64.mul_wide_u" None {I64 I64 -> I64, I64} Pure Wasm "Multiplies, unsigned. Pushes the low word of the product, then the high word.";
        0xfc20 I32AddOverflowS "i32.add_overflow_s" None {I32 I32 -> I32, I32} Pure Own "Adds, wrapping. Pushes the result, then 1 if it overflows as a signed number, else 0.";
        0xfc21 I32AddOverflowU "i32.add_overflow_u" None {I32 I32 -> I32, I32} Pure Own "Adds, wrapping. Pushes the result, then 1 if it overflows as an unsigned number, else 0.";
        0xfc22 I32SubOverflowS "i32.sub_overflow_s" None {I32 I32 -> I32, I32} Pure Own "Subtracts, wrapping. Pushes the result, then 1 if it overflows as a signed number, else 0.";
        0xfc23 I32SubOverflowU "i32.sub_overflow_u" None {I32 I32 -> I32, I32} Pure Own "Subtracts, wrapping. Pushes the result, then 1 if it overflows as an unsigned number, else 0.";
        0xfc24 I32MulOverflowS "i32.mul_overflow_s" None {I32 I32 -> I32, I32} Pure Own "Multiplies, wrapping. Pushes the result, then 1 if it overflows as a signed number, else 0.";
        0xfc25 I32MulOverflowU "i32.mul_overflow_u" None {I32 I32 -> I32, I32} Pure Own "Multiplies, wrapping. Pushes the result, then 1 if it overflows as an unsigned number, else 0.";
        0xfc26 I64AddOverflowS "i64.add_overflow_s" None {I64 I64 -> I64, I32} Pure Own "Adds, wrapping. Pushes the result, then 1 if it overflows as a signed number, else 0.";
        0xfc27 I64AddOverflowU "i64.add_overflow_u" None {I64 I64 -> I64, I32} Pure Own "Adds, wrapping. Pushes the result, then 1 if it overflows as an unsigned number, else 0.";
        0xfc28 I64SubOverflowS "i64.sub_overflow_s" None {I64 I64 -> I64, I32} Pure Own "Subtracts, wrapping. Pushes the result, then 1 if it overflows as a signed number, else 0.";
        0xfc29 I64SubOverflowU "i64.sub_overflow_u" None {I64 I64 -> I64, I32} Pure Own "Subtracts, wrapping. Pushes the result, then 1 if it overflows as an unsigned number, else 0.";
        0xfc2a I64MulOverflowS "i64.mul_overflow_s" None {I64 I64 -> I64, I32} Pure Own "Multiplies, wrapping. Pushes the result, then 1 if it overflows as a signed number, else 0.";
        0xfc2b I64MulOverflowU "i64.mul_overflow_u" None {I64 I64 -> I64, I32} Pure Own "Multiplies, wrapping. Pushes the result, then 1 if it overflows as an unsigned number, else 0.";
        // SIMD. The first byte is 0xfd, the second the low byte of the code. [`crate::vector`] computes them.
        0xfd00 V128Load "v128.load" Mem(16) {I32 -> V128} Read Wasm "Pops an address; loads 16 bytes.";
        0xfd01 V128Load8x8S "v128.load8x8_s" Mem(8 extends 1 signed) {I32 -> V128} Read Wasm "Pops an address; loads 8 bytes, 8 lanes of 8 bits that are sign-extended to 16.";
        0xfd02 V128Load8x8U "v128.load8x8_u" Mem(8 extends 1 unsigned) {I32 -> V128} Read Wasm "Pops an address; loads 8 bytes, 8 lanes of 8 bits that are zero-extended to 16.";
        0xfd03 V128Load16x4S "v128.load16x4_s" Mem(8 extends 2 signed) {I32 -> V128} Read Wasm "Pops an address; loads 8 bytes, 4 lanes of 16 bits that are sign-extended to 32.";
        0xfd04 V128Load16x4U "v128.load16x4_u" Mem(8 extends 2 unsigned) {I32 -> V128} Read Wasm "Pops an address; loads 8 bytes, 4 lanes of 16 bits that are zero-extended to 32.";
        0xfd05 V128Load32x2S "v128.load32x2_s" Mem(8 extends 4 signed) {I32 -> V128} Read Wasm "Pops an address; loads 8 bytes, 2 lanes of 32 bits that are sign-extended to 64.";
        0xfd06 V128Load32x2U "v128.load32x2_u" Mem(8 extends 4 unsigned) {I32 -> V128} Read Wasm "Pops an address; loads 8 bytes, 2 lanes of 32 bits that are zero-extended to 64.";
        0xfd07 V128Load8Splat "v128.load8_splat" Mem(1 splat) {I32 -> V128} Read Wasm "Pops an address; loads 1 byte into all lanes.";
        0xfd08 V128Load16Splat "v128.load16_splat" Mem(2 splat) {I32 -> V128} Read Wasm "Pops an address; loads 2 bytes into all lanes.";
        0xfd09 V128Load32Splat "v128.load32_splat" Mem(4 splat) {I32 -> V128} Read Wasm "Pops an address; loads 4 bytes into all lanes.";
        0xfd0a V128Load64Splat "v128.load64_splat" Mem(8 splat) {I32 -> V128} Read Wasm "Pops an address; loads 8 bytes into all lanes.";
        0xfd0b V128Store "v128.store" Mem(16) {I32 V128 ->} Write Wasm "Pops a value, then an address; stores its 16 bytes.";
        0xfd0c V128Const "v128.const" V128 {-> V128} Pure Wasm "Pushes the constant.";
        0xfd0d I8x16Shuffle "i8x16.shuffle" Lanes {I8x16 I8x16 -> I8x16} Pure Wasm "Takes each lane from one of the two vectors: the first has lanes 0 to 15, the second lanes 16 to 31.";
        0xfd0e I8x16Swizzle "i8x16.swizzle" None {I8x16 I8x16 -> I8x16} Pure Wasm "Each lane of the second selects a lane of the first; an index beyond 15 selects zero.";
        0xfd0f I8x16Splat "i8x16.splat" None {I32 -> I8x16} Pure Wasm "Pops a number; copies its low bits into all lanes.";
        0xfd10 I16x8Splat "i16x8.splat" None {I32 -> I16x8} Pure Wasm "Pops a number; copies its low bits into all lanes.";
        0xfd11 I32x4Splat "i32x4.splat" None {I32 -> I32x4} Pure Wasm "Pops a number into all lanes.";
        0xfd12 I64x2Splat "i64x2.splat" None {I64 -> I64x2} Pure Wasm "Pops a number into all lanes.";
        0xfd13 F32x4Splat "f32x4.splat" None {F32 -> F32x4 exact} Pure Wasm "Pops a number into all lanes.";
        0xfd14 F64x2Splat "f64x2.splat" None {F64 -> F64x2 exact} Pure Wasm "Pops a number into all lanes.";
        0xfd15 I8x16ExtractLaneS "i8x16.extract_lane_s" Lane {I8x16 -> I32} Pure Wasm "The lane, sign-extended.";
        0xfd16 I8x16ExtractLaneU "i8x16.extract_lane_u" Lane {I8x16 -> I32} Pure Wasm "The lane, zero-extended.";
        0xfd17 I8x16ReplaceLane "i8x16.replace_lane" Lane {I8x16 I32 -> I8x16} Pure Wasm "Pops a value, then a vector; replaces the lane.";
        0xfd18 I16x8ExtractLaneS "i16x8.extract_lane_s" Lane {I16x8 -> I32} Pure Wasm "The lane, sign-extended.";
        0xfd19 I16x8ExtractLaneU "i16x8.extract_lane_u" Lane {I16x8 -> I32} Pure Wasm "The lane, zero-extended.";
        0xfd1a I16x8ReplaceLane "i16x8.replace_lane" Lane {I16x8 I32 -> I16x8} Pure Wasm "Pops a value, then a vector; replaces the lane.";
        0xfd1b I32x4ExtractLane "i32x4.extract_lane" Lane {I32x4 -> I32} Pure Wasm "The lane.";
        0xfd1c I32x4ReplaceLane "i32x4.replace_lane" Lane {I32x4 I32 -> I32x4} Pure Wasm "Pops a value, then a vector; replaces the lane.";
        0xfd1d I64x2ExtractLane "i64x2.extract_lane" Lane {I64x2 -> I64} Pure Wasm "The lane.";
        0xfd1e I64x2ReplaceLane "i64x2.replace_lane" Lane {I64x2 I64 -> I64x2} Pure Wasm "Pops a value, then a vector; replaces the lane.";
        0xfd1f F32x4ExtractLane "f32x4.extract_lane" Lane {F32x4 -> F32 exact} Pure Wasm "The lane.";
        0xfd20 F32x4ReplaceLane "f32x4.replace_lane" Lane {F32x4 F32 -> F32x4 exact} Pure Wasm "Pops a value, then a vector; replaces the lane.";
        0xfd21 F64x2ExtractLane "f64x2.extract_lane" Lane {F64x2 -> F64 exact} Pure Wasm "The lane.";
        0xfd22 F64x2ReplaceLane "f64x2.replace_lane" Lane {F64x2 F64 -> F64x2 exact} Pure Wasm "Pops a value, then a vector; replaces the lane.";
        0xfd23 I8x16Eq "i8x16.eq" None {I8x16 I8x16 -> I8x16} Pure Wasm "Lanes are all ones where equal, else zero.";
        0xfd24 I8x16Ne "i8x16.ne" None {I8x16 I8x16 -> I8x16} Pure Wasm "Lanes are all ones where not equal, else zero.";
        0xfd25 I8x16LtS "i8x16.lt_s" None {I8x16 I8x16 -> I8x16} Pure Wasm "Lanes are all ones where less than, signed, else zero.";
        0xfd26 I8x16LtU "i8x16.lt_u" None {I8x16 I8x16 -> I8x16} Pure Wasm "Lanes are all ones where less than, unsigned, else zero.";
        0xfd27 I8x16GtS "i8x16.gt_s" None {I8x16 I8x16 -> I8x16} Pure Wasm "Lanes are all ones where greater than, signed, else zero.";
        0xfd28 I8x16GtU "i8x16.gt_u" None {I8x16 I8x16 -> I8x16} Pure Wasm "Lanes are all ones where greater than, unsigned, else zero.";
        0xfd29 I8x16LeS "i8x16.le_s" None {I8x16 I8x16 -> I8x16} Pure Wasm "Lanes are all ones where less or equal, signed, else zero.";
        0xfd2a I8x16LeU "i8x16.le_u" None {I8x16 I8x16 -> I8x16} Pure Wasm "Lanes are all ones where less or equal, unsigned, else zero.";
        0xfd2b I8x16GeS "i8x16.ge_s" None {I8x16 I8x16 -> I8x16} Pure Wasm "Lanes are all ones where greater or equal, signed, else zero.";
        0xfd2c I8x16GeU "i8x16.ge_u" None {I8x16 I8x16 -> I8x16} Pure Wasm "Lanes are all ones where greater or equal, unsigned, else zero.";
        0xfd2d I16x8Eq "i16x8.eq" None {I16x8 I16x8 -> I16x8} Pure Wasm "Lanes are all ones where equal, else zero.";
        0xfd2e I16x8Ne "i16x8.ne" None {I16x8 I16x8 -> I16x8} Pure Wasm "Lanes are all ones where not equal, else zero.";
        0xfd2f I16x8LtS "i16x8.lt_s" None {I16x8 I16x8 -> I16x8} Pure Wasm "Lanes are all ones where less than, signed, else zero.";
        0xfd30 I16x8LtU "i16x8.lt_u" None {I16x8 I16x8 -> I16x8} Pure Wasm "Lanes are all ones where less than, unsigned, else zero.";
        0xfd31 I16x8GtS "i16x8.gt_s" None {I16x8 I16x8 -> I16x8} Pure Wasm "Lanes are all ones where greater than, signed, else zero.";
        0xfd32 I16x8GtU "i16x8.gt_u" None {I16x8 I16x8 -> I16x8} Pure Wasm "Lanes are all ones where greater than, unsigned, else zero.";
        0xfd33 I16x8LeS "i16x8.le_s" None {I16x8 I16x8 -> I16x8} Pure Wasm "Lanes are all ones where less or equal, signed, else zero.";
        0xfd34 I16x8LeU "i16x8.le_u" None {I16x8 I16x8 -> I16x8} Pure Wasm "Lanes are all ones where less or equal, unsigned, else zero.";
        0xfd35 I16x8GeS "i16x8.ge_s" None {I16x8 I16x8 -> I16x8} Pure Wasm "Lanes are all ones where greater or equal, signed, else zero.";
        0xfd36 I16x8GeU "i16x8.ge_u" None {I16x8 I16x8 -> I16x8} Pure Wasm "Lanes are all ones where greater or equal, unsigned, else zero.";
        0xfd37 I32x4Eq "i32x4.eq" None {I32x4 I32x4 -> I32x4} Pure Wasm "Lanes are all ones where equal, else zero.";
        0xfd38 I32x4Ne "i32x4.ne" None {I32x4 I32x4 -> I32x4} Pure Wasm "Lanes are all ones where not equal, else zero.";
        0xfd39 I32x4LtS "i32x4.lt_s" None {I32x4 I32x4 -> I32x4} Pure Wasm "Lanes are all ones where less than, signed, else zero.";
        0xfd3a I32x4LtU "i32x4.lt_u" None {I32x4 I32x4 -> I32x4} Pure Wasm "Lanes are all ones where less than, unsigned, else zero.";
        0xfd3b I32x4GtS "i32x4.gt_s" None {I32x4 I32x4 -> I32x4} Pure Wasm "Lanes are all ones where greater than, signed, else zero.";
        0xfd3c I32x4GtU "i32x4.gt_u" None {I32x4 I32x4 -> I32x4} Pure Wasm "Lanes are all ones where greater than, unsigned, else zero.";
        0xfd3d I32x4LeS "i32x4.le_s" None {I32x4 I32x4 -> I32x4} Pure Wasm "Lanes are all ones where less or equal, signed, else zero.";
        0xfd3e I32x4LeU "i32x4.le_u" None {I32x4 I32x4 -> I32x4} Pure Wasm "Lanes are all ones where less or equal, unsigned, else zero.";
        0xfd3f I32x4GeS "i32x4.ge_s" None {I32x4 I32x4 -> I32x4} Pure Wasm "Lanes are all ones where greater or equal, signed, else zero.";
        0xfd40 I32x4GeU "i32x4.ge_u" None {I32x4 I32x4 -> I32x4} Pure Wasm "Lanes are all ones where greater or equal, unsigned, else zero.";
        0xfd41 F32x4Eq "f32x4.eq" None {F32x4 F32x4 -> I32x4} Pure Wasm "Lanes are all ones where equal, else zero.";
        0xfd42 F32x4Ne "f32x4.ne" None {F32x4 F32x4 -> I32x4} Pure Wasm "Lanes are all ones where not equal or unordered, else zero.";
        0xfd43 F32x4Lt "f32x4.lt" None {F32x4 F32x4 -> I32x4} Pure Wasm "Lanes are all ones where less than, else zero.";
        0xfd44 F32x4Gt "f32x4.gt" None {F32x4 F32x4 -> I32x4} Pure Wasm "Lanes are all ones where greater than, else zero.";
        0xfd45 F32x4Le "f32x4.le" None {F32x4 F32x4 -> I32x4} Pure Wasm "Lanes are all ones where less or equal, else zero.";
        0xfd46 F32x4Ge "f32x4.ge" None {F32x4 F32x4 -> I32x4} Pure Wasm "Lanes are all ones where greater or equal, else zero.";
        0xfd47 F64x2Eq "f64x2.eq" None {F64x2 F64x2 -> I64x2} Pure Wasm "Lanes are all ones where equal, else zero.";
        0xfd48 F64x2Ne "f64x2.ne" None {F64x2 F64x2 -> I64x2} Pure Wasm "Lanes are all ones where not equal or unordered, else zero.";
        0xfd49 F64x2Lt "f64x2.lt" None {F64x2 F64x2 -> I64x2} Pure Wasm "Lanes are all ones where less than, else zero.";
        0xfd4a F64x2Gt "f64x2.gt" None {F64x2 F64x2 -> I64x2} Pure Wasm "Lanes are all ones where greater than, else zero.";
        0xfd4b F64x2Le "f64x2.le" None {F64x2 F64x2 -> I64x2} Pure Wasm "Lanes are all ones where less or equal, else zero.";
        0xfd4c F64x2Ge "f64x2.ge" None {F64x2 F64x2 -> I64x2} Pure Wasm "Lanes are all ones where greater or equal, else zero.";
        0xfd4d V128Not "v128.not" None {V128 -> V128} Pure Wasm "Flips all bits.";
        0xfd4e V128And "v128.and" None {V128 V128 -> V128} Pure Wasm "Bitwise and.";
        0xfd4f V128AndNot "v128.andnot" None {V128 V128 -> V128} Pure Wasm "Bitwise and of the first and the inverse of the second.";
        0xfd50 V128Or "v128.or" None {V128 V128 -> V128} Pure Wasm "Bitwise or.";
        0xfd51 V128Xor "v128.xor" None {V128 V128 -> V128} Pure Wasm "Bitwise exclusive or.";
        0xfd52 V128Bitselect "v128.bitselect" None {V128 V128 V128 -> V128} Pure Wasm "Bits of the first where the third has ones, of the second elsewhere.";
        0xfd53 V128AnyTrue "v128.any_true" None {V128 -> I32} Pure Wasm "1 if any bit is set, else 0.";
        0xfd54 V128Load8Lane "v128.load8_lane" MemLane(1 lane) {I32 V128 -> V128} Read Wasm "Pops a vector, then an address; loads 1 byte into the lane.";
        0xfd55 V128Load16Lane "v128.load16_lane" MemLane(2 lane) {I32 V128 -> V128} Read Wasm "Pops a vector, then an address; loads 2 bytes into the lane.";
        0xfd56 V128Load32Lane "v128.load32_lane" MemLane(4 lane) {I32 V128 -> V128} Read Wasm "Pops a vector, then an address; loads 4 bytes into the lane.";
        0xfd57 V128Load64Lane "v128.load64_lane" MemLane(8 lane) {I32 V128 -> V128} Read Wasm "Pops a vector, then an address; loads 8 bytes into the lane.";
        0xfd58 V128Store8Lane "v128.store8_lane" MemLane(1 lane) {I32 V128 ->} Write Wasm "Pops a vector, then an address; stores the 1 byte of the lane.";
        0xfd59 V128Store16Lane "v128.store16_lane" MemLane(2 lane) {I32 V128 ->} Write Wasm "Pops a vector, then an address; stores the 2 bytes of the lane.";
        0xfd5a V128Store32Lane "v128.store32_lane" MemLane(4 lane) {I32 V128 ->} Write Wasm "Pops a vector, then an address; stores the 4 bytes of the lane.";
        0xfd5b V128Store64Lane "v128.store64_lane" MemLane(8 lane) {I32 V128 ->} Write Wasm "Pops a vector, then an address; stores the 8 bytes of the lane.";
        0xfd5c V128Load32Zero "v128.load32_zero" Mem(4 low) {I32 -> V128} Read Wasm "Pops an address; loads 4 bytes into the lowest lane, the others are zero.";
        0xfd5d V128Load64Zero "v128.load64_zero" Mem(8 low) {I32 -> V128} Read Wasm "Pops an address; loads 8 bytes into the lowest lane, the other is zero.";
        0xfd5e F32x4DemoteF64x2Zero "f32x4.demote_f64x2_zero" None {F64x2 -> F32x4 nan} Pure Wasm "Rounds both lanes to the narrower format; the upper lanes are zero.";
        0xfd5f F64x2PromoteLowF32x4 "f64x2.promote_low_f32x4" None {F32x4 -> F64x2 nan} Pure Wasm "Converts the two lower lanes to the wider format.";
        0xfd60 I8x16Abs "i8x16.abs" None {I8x16 -> I8x16} Pure Wasm "Absolute values, wrapping.";
        0xfd61 I8x16Neg "i8x16.neg" None {I8x16 -> I8x16} Pure Wasm "Negates, wrapping.";
        0xfd62 I8x16Popcnt "i8x16.popcnt" None {I8x16 -> I8x16} Pure Wasm "Counts one bits.";
        0xfd63 I8x16AllTrue "i8x16.all_true" None {I8x16 -> I32} Pure Wasm "1 if no lane is zero, else 0.";
        0xfd64 I8x16Bitmask "i8x16.bitmask" None {I8x16 -> I32} Pure Wasm "The sign bits of all lanes, lane 0 lowest.";
        0xfd65 I8x16NarrowI16x8S "i8x16.narrow_i16x8_s" None {I16x8 I16x8 -> I8x16} Pure Wasm "Narrows the signed lanes of both, those of the first below; saturates, signed.";
        0xfd66 I8x16NarrowI16x8U "i8x16.narrow_i16x8_u" None {I16x8 I16x8 -> I8x16} Pure Wasm "Narrows the signed lanes of both, those of the first below; saturates, unsigned.";
        0xfd67 F32x4Ceil "f32x4.ceil" None {F32x4 -> F32x4 nan} Pure Wasm "Rounds up.";
        0xfd68 F32x4Floor "f32x4.floor" None {F32x4 -> F32x4 nan} Pure Wasm "Rounds down.";
        0xfd69 F32x4Trunc "f32x4.trunc" None {F32x4 -> F32x4 nan} Pure Wasm "Rounds towards zero.";
        0xfd6a F32x4Nearest "f32x4.nearest" None {F32x4 -> F32x4 nan} Pure Wasm "Rounds to nearest, ties to even.";
        0xfd6b I8x16Shl "i8x16.shl" None {I8x16 I32 -> I8x16} Pure Wasm "Shifts left by the count modulo the lane width.";
        0xfd6c I8x16ShrS "i8x16.shr_s" None {I8x16 I32 -> I8x16} Pure Wasm "Shifts right, filling with the sign, by the count modulo the lane width.";
        0xfd6d I8x16ShrU "i8x16.shr_u" None {I8x16 I32 -> I8x16} Pure Wasm "Shifts right, filling with zero, by the count modulo the lane width.";
        0xfd6e I8x16Add "i8x16.add" None {I8x16 I8x16 -> I8x16} Pure Wasm "Adds, wrapping.";
        0xfd6f I8x16AddSatS "i8x16.add_sat_s" None {I8x16 I8x16 -> I8x16} Pure Wasm "Adds, saturating, signed.";
        0xfd70 I8x16AddSatU "i8x16.add_sat_u" None {I8x16 I8x16 -> I8x16} Pure Wasm "Adds, saturating, unsigned.";
        0xfd71 I8x16Sub "i8x16.sub" None {I8x16 I8x16 -> I8x16} Pure Wasm "Subtracts, wrapping.";
        0xfd72 I8x16SubSatS "i8x16.sub_sat_s" None {I8x16 I8x16 -> I8x16} Pure Wasm "Subtracts, saturating, signed.";
        0xfd73 I8x16SubSatU "i8x16.sub_sat_u" None {I8x16 I8x16 -> I8x16} Pure Wasm "Subtracts, saturating, unsigned.";
        0xfd74 F64x2Ceil "f64x2.ceil" None {F64x2 -> F64x2 nan} Pure Wasm "Rounds up.";
        0xfd75 F64x2Floor "f64x2.floor" None {F64x2 -> F64x2 nan} Pure Wasm "Rounds down.";
        0xfd76 I8x16MinS "i8x16.min_s" None {I8x16 I8x16 -> I8x16} Pure Wasm "Minimum, signed.";
        0xfd77 I8x16MinU "i8x16.min_u" None {I8x16 I8x16 -> I8x16} Pure Wasm "Minimum, unsigned.";
        0xfd78 I8x16MaxS "i8x16.max_s" None {I8x16 I8x16 -> I8x16} Pure Wasm "Maximum, signed.";
        0xfd79 I8x16MaxU "i8x16.max_u" None {I8x16 I8x16 -> I8x16} Pure Wasm "Maximum, unsigned.";
        0xfd7a F64x2Trunc "f64x2.trunc" None {F64x2 -> F64x2 nan} Pure Wasm "Rounds towards zero.";
        0xfd7b I8x16AvgrU "i8x16.avgr_u" None {I8x16 I8x16 -> I8x16} Pure Wasm "Average, unsigned, rounding up.";
        0xfd7c I16x8ExtAddPairwiseI8x16S "i16x8.extadd_pairwise_i8x16_s" None {I8x16 -> I16x8} Pure Wasm "Adds pairs of neighbouring lanes, sign-extended.";
        0xfd7d I16x8ExtAddPairwiseI8x16U "i16x8.extadd_pairwise_i8x16_u" None {I8x16 -> I16x8} Pure Wasm "Adds pairs of neighbouring lanes, zero-extended.";
        0xfd7e I32x4ExtAddPairwiseI16x8S "i32x4.extadd_pairwise_i16x8_s" None {I16x8 -> I32x4} Pure Wasm "Adds pairs of neighbouring lanes, sign-extended.";
        0xfd7f I32x4ExtAddPairwiseI16x8U "i32x4.extadd_pairwise_i16x8_u" None {I16x8 -> I32x4} Pure Wasm "Adds pairs of neighbouring lanes, zero-extended.";
        0xfd80 I16x8Abs "i16x8.abs" None {I16x8 -> I16x8} Pure Wasm "Absolute values, wrapping.";
        0xfd81 I16x8Neg "i16x8.neg" None {I16x8 -> I16x8} Pure Wasm "Negates, wrapping.";
        0xfd82 I16x8Q15MulrSatS "i16x8.q15mulr_sat_s" None {I16x8 I16x8 -> I16x8} Pure Wasm "Product of fixed-point numbers with 15 fractional bits, rounding and saturating.";
        0xfd83 I16x8AllTrue "i16x8.all_true" None {I16x8 -> I32} Pure Wasm "1 if no lane is zero, else 0.";
        0xfd84 I16x8Bitmask "i16x8.bitmask" None {I16x8 -> I32} Pure Wasm "The sign bits of all lanes, lane 0 lowest.";
        0xfd85 I16x8NarrowI32x4S "i16x8.narrow_i32x4_s" None {I32x4 I32x4 -> I16x8} Pure Wasm "Narrows the signed lanes of both, those of the first below; saturates, signed.";
        0xfd86 I16x8NarrowI32x4U "i16x8.narrow_i32x4_u" None {I32x4 I32x4 -> I16x8} Pure Wasm "Narrows the signed lanes of both, those of the first below; saturates, unsigned.";
        0xfd87 I16x8ExtendLowI8x16S "i16x8.extend_low_i8x16_s" None {I8x16 -> I16x8} Pure Wasm "The lanes of the lower half, sign-extended.";
        0xfd88 I16x8ExtendHighI8x16S "i16x8.extend_high_i8x16_s" None {I8x16 -> I16x8} Pure Wasm "The lanes of the upper half, sign-extended.";
        0xfd89 I16x8ExtendLowI8x16U "i16x8.extend_low_i8x16_u" None {I8x16 -> I16x8} Pure Wasm "The lanes of the lower half, zero-extended.";
        0xfd8a I16x8ExtendHighI8x16U "i16x8.extend_high_i8x16_u" None {I8x16 -> I16x8} Pure Wasm "The lanes of the upper half, zero-extended.";
        0xfd8b I16x8Shl "i16x8.shl" None {I16x8 I32 -> I16x8} Pure Wasm "Shifts left by the count modulo the lane width.";
        0xfd8c I16x8ShrS "i16x8.shr_s" None {I16x8 I32 -> I16x8} Pure Wasm "Shifts right, filling with the sign, by the count modulo the lane width.";
        0xfd8d I16x8ShrU "i16x8.shr_u" None {I16x8 I32 -> I16x8} Pure Wasm "Shifts right, filling with zero, by the count modulo the lane width.";
        0xfd8e I16x8Add "i16x8.add" None {I16x8 I16x8 -> I16x8} Pure Wasm "Adds, wrapping.";
        0xfd8f I16x8AddSatS "i16x8.add_sat_s" None {I16x8 I16x8 -> I16x8} Pure Wasm "Adds, saturating, signed.";
        0xfd90 I16x8AddSatU "i16x8.add_sat_u" None {I16x8 I16x8 -> I16x8} Pure Wasm "Adds, saturating, unsigned.";
        0xfd91 I16x8Sub "i16x8.sub" None {I16x8 I16x8 -> I16x8} Pure Wasm "Subtracts, wrapping.";
        0xfd92 I16x8SubSatS "i16x8.sub_sat_s" None {I16x8 I16x8 -> I16x8} Pure Wasm "Subtracts, saturating, signed.";
        0xfd93 I16x8SubSatU "i16x8.sub_sat_u" None {I16x8 I16x8 -> I16x8} Pure Wasm "Subtracts, saturating, unsigned.";
        0xfd94 F64x2Nearest "f64x2.nearest" None {F64x2 -> F64x2 nan} Pure Wasm "Rounds to nearest, ties to even.";
        0xfd95 I16x8Mul "i16x8.mul" None {I16x8 I16x8 -> I16x8} Pure Wasm "Multiplies, wrapping.";
        0xfd96 I16x8MinS "i16x8.min_s" None {I16x8 I16x8 -> I16x8} Pure Wasm "Minimum, signed.";
        0xfd97 I16x8MinU "i16x8.min_u" None {I16x8 I16x8 -> I16x8} Pure Wasm "Minimum, unsigned.";
        0xfd98 I16x8MaxS "i16x8.max_s" None {I16x8 I16x8 -> I16x8} Pure Wasm "Maximum, signed.";
        0xfd99 I16x8MaxU "i16x8.max_u" None {I16x8 I16x8 -> I16x8} Pure Wasm "Maximum, unsigned.";
        0xfd9b I16x8AvgrU "i16x8.avgr_u" None {I16x8 I16x8 -> I16x8} Pure Wasm "Average, unsigned, rounding up.";
        0xfd9c I16x8ExtMulLowI8x16S "i16x8.extmul_low_i8x16_s" None {I8x16 I8x16 -> I16x8} Pure Wasm "Multiplies the lanes of the lower halves, sign-extended.";
        0xfd9d I16x8ExtMulHighI8x16S "i16x8.extmul_high_i8x16_s" None {I8x16 I8x16 -> I16x8} Pure Wasm "Multiplies the lanes of the upper halves, sign-extended.";
        0xfd9e I16x8ExtMulLowI8x16U "i16x8.extmul_low_i8x16_u" None {I8x16 I8x16 -> I16x8} Pure Wasm "Multiplies the lanes of the lower halves, zero-extended.";
        0xfd9f I16x8ExtMulHighI8x16U "i16x8.extmul_high_i8x16_u" None {I8x16 I8x16 -> I16x8} Pure Wasm "Multiplies the lanes of the upper halves, zero-extended.";
        0xfda0 I32x4Abs "i32x4.abs" None {I32x4 -> I32x4} Pure Wasm "Absolute values, wrapping.";
        0xfda1 I32x4Neg "i32x4.neg" None {I32x4 -> I32x4} Pure Wasm "Negates, wrapping.";
        0xfda3 I32x4AllTrue "i32x4.all_true" None {I32x4 -> I32} Pure Wasm "1 if no lane is zero, else 0.";
        0xfda4 I32x4Bitmask "i32x4.bitmask" None {I32x4 -> I32} Pure Wasm "The sign bits of all lanes, lane 0 lowest.";
        0xfda7 I32x4ExtendLowI16x8S "i32x4.extend_low_i16x8_s" None {I16x8 -> I32x4} Pure Wasm "The lanes of the lower half, sign-extended.";
        0xfda8 I32x4ExtendHighI16x8S "i32x4.extend_high_i16x8_s" None {I16x8 -> I32x4} Pure Wasm "The lanes of the upper half, sign-extended.";
        0xfda9 I32x4ExtendLowI16x8U "i32x4.extend_low_i16x8_u" None {I16x8 -> I32x4} Pure Wasm "The lanes of the lower half, zero-extended.";
        0xfdaa I32x4ExtendHighI16x8U "i32x4.extend_high_i16x8_u" None {I16x8 -> I32x4} Pure Wasm "The lanes of the upper half, zero-extended.";
        0xfdab I32x4Shl "i32x4.shl" None {I32x4 I32 -> I32x4} Pure Wasm "Shifts left by the count modulo the lane width.";
        0xfdac I32x4ShrS "i32x4.shr_s" None {I32x4 I32 -> I32x4} Pure Wasm "Shifts right, filling with the sign, by the count modulo the lane width.";
        0xfdad I32x4ShrU "i32x4.shr_u" None {I32x4 I32 -> I32x4} Pure Wasm "Shifts right, filling with zero, by the count modulo the lane width.";
        0xfdae I32x4Add "i32x4.add" None {I32x4 I32x4 -> I32x4} Pure Wasm "Adds, wrapping.";
        0xfdb1 I32x4Sub "i32x4.sub" None {I32x4 I32x4 -> I32x4} Pure Wasm "Subtracts, wrapping.";
        0xfdb5 I32x4Mul "i32x4.mul" None {I32x4 I32x4 -> I32x4} Pure Wasm "Multiplies, wrapping.";
        0xfdb6 I32x4MinS "i32x4.min_s" None {I32x4 I32x4 -> I32x4} Pure Wasm "Minimum, signed.";
        0xfdb7 I32x4MinU "i32x4.min_u" None {I32x4 I32x4 -> I32x4} Pure Wasm "Minimum, unsigned.";
        0xfdb8 I32x4MaxS "i32x4.max_s" None {I32x4 I32x4 -> I32x4} Pure Wasm "Maximum, signed.";
        0xfdb9 I32x4MaxU "i32x4.max_u" None {I32x4 I32x4 -> I32x4} Pure Wasm "Maximum, unsigned.";
        0xfdba I32x4DotI16x8S "i32x4.dot_i16x8_s" None {I16x8 I16x8 -> I32x4} Pure Wasm "Multiplies signed lanes and adds neighbouring products, wrapping.";
        0xfdbc I32x4ExtMulLowI16x8S "i32x4.extmul_low_i16x8_s" None {I16x8 I16x8 -> I32x4} Pure Wasm "Multiplies the lanes of the lower halves, sign-extended.";
        0xfdbd I32x4ExtMulHighI16x8S "i32x4.extmul_high_i16x8_s" None {I16x8 I16x8 -> I32x4} Pure Wasm "Multiplies the lanes of the upper halves, sign-extended.";
        0xfdbe I32x4ExtMulLowI16x8U "i32x4.extmul_low_i16x8_u" None {I16x8 I16x8 -> I32x4} Pure Wasm "Multiplies the lanes of the lower halves, zero-extended.";
        0xfdbf I32x4ExtMulHighI16x8U "i32x4.extmul_high_i16x8_u" None {I16x8 I16x8 -> I32x4} Pure Wasm "Multiplies the lanes of the upper halves, zero-extended.";
        0xfdc0 I64x2Abs "i64x2.abs" None {I64x2 -> I64x2} Pure Wasm "Absolute values, wrapping.";
        0xfdc1 I64x2Neg "i64x2.neg" None {I64x2 -> I64x2} Pure Wasm "Negates, wrapping.";
        0xfdc3 I64x2AllTrue "i64x2.all_true" None {I64x2 -> I32} Pure Wasm "1 if no lane is zero, else 0.";
        0xfdc4 I64x2Bitmask "i64x2.bitmask" None {I64x2 -> I32} Pure Wasm "The sign bits of all lanes, lane 0 lowest.";
        0xfdc7 I64x2ExtendLowI32x4S "i64x2.extend_low_i32x4_s" None {I32x4 -> I64x2} Pure Wasm "The lanes of the lower half, sign-extended.";
        0xfdc8 I64x2ExtendHighI32x4S "i64x2.extend_high_i32x4_s" None {I32x4 -> I64x2} Pure Wasm "The lanes of the upper half, sign-extended.";
        0xfdc9 I64x2ExtendLowI32x4U "i64x2.extend_low_i32x4_u" None {I32x4 -> I64x2} Pure Wasm "The lanes of the lower half, zero-extended.";
        0xfdca I64x2ExtendHighI32x4U "i64x2.extend_high_i32x4_u" None {I32x4 -> I64x2} Pure Wasm "The lanes of the upper half, zero-extended.";
        0xfdcb I64x2Shl "i64x2.shl" None {I64x2 I32 -> I64x2} Pure Wasm "Shifts left by the count modulo the lane width.";
        0xfdcc I64x2ShrS "i64x2.shr_s" None {I64x2 I32 -> I64x2} Pure Wasm "Shifts right, filling with the sign, by the count modulo the lane width.";
        0xfdcd I64x2ShrU "i64x2.shr_u" None {I64x2 I32 -> I64x2} Pure Wasm "Shifts right, filling with zero, by the count modulo the lane width.";
        0xfdce I64x2Add "i64x2.add" None {I64x2 I64x2 -> I64x2} Pure Wasm "Adds, wrapping.";
        0xfdd1 I64x2Sub "i64x2.sub" None {I64x2 I64x2 -> I64x2} Pure Wasm "Subtracts, wrapping.";
        0xfdd5 I64x2Mul "i64x2.mul" None {I64x2 I64x2 -> I64x2} Pure Wasm "Multiplies, wrapping.";
        0xfdd6 I64x2Eq "i64x2.eq" None {I64x2 I64x2 -> I64x2} Pure Wasm "Lanes are all ones where equal, else zero.";
        0xfdd7 I64x2Ne "i64x2.ne" None {I64x2 I64x2 -> I64x2} Pure Wasm "Lanes are all ones where not equal, else zero.";
        0xfdd8 I64x2LtS "i64x2.lt_s" None {I64x2 I64x2 -> I64x2} Pure Wasm "Lanes are all ones where less than, signed, else zero.";
        0xfdd9 I64x2GtS "i64x2.gt_s" None {I64x2 I64x2 -> I64x2} Pure Wasm "Lanes are all ones where greater than, signed, else zero.";
        0xfdda I64x2LeS "i64x2.le_s" None {I64x2 I64x2 -> I64x2} Pure Wasm "Lanes are all ones where less or equal, signed, else zero.";
        0xfddb I64x2GeS "i64x2.ge_s" None {I64x2 I64x2 -> I64x2} Pure Wasm "Lanes are all ones where greater or equal, signed, else zero.";
        0xfddc I64x2ExtMulLowI32x4S "i64x2.extmul_low_i32x4_s" None {I32x4 I32x4 -> I64x2} Pure Wasm "Multiplies the lanes of the lower halves, sign-extended.";
        0xfddd I64x2ExtMulHighI32x4S "i64x2.extmul_high_i32x4_s" None {I32x4 I32x4 -> I64x2} Pure Wasm "Multiplies the lanes of the upper halves, sign-extended.";
        0xfdde I64x2ExtMulLowI32x4U "i64x2.extmul_low_i32x4_u" None {I32x4 I32x4 -> I64x2} Pure Wasm "Multiplies the lanes of the lower halves, zero-extended.";
        0xfddf I64x2ExtMulHighI32x4U "i64x2.extmul_high_i32x4_u" None {I32x4 I32x4 -> I64x2} Pure Wasm "Multiplies the lanes of the upper halves, zero-extended.";
        0xfde0 F32x4Abs "f32x4.abs" None {F32x4 -> F32x4 exact} Pure Wasm "Clears the signs.";
        0xfde1 F32x4Neg "f32x4.neg" None {F32x4 -> F32x4 exact} Pure Wasm "Flips the signs.";
        0xfde3 F32x4Sqrt "f32x4.sqrt" None {F32x4 -> F32x4 nan} Pure Wasm "Square roots.";
        0xfde4 F32x4Add "f32x4.add" None {F32x4 F32x4 -> F32x4 nan} Pure Wasm "Adds.";
        0xfde5 F32x4Sub "f32x4.sub" None {F32x4 F32x4 -> F32x4 nan} Pure Wasm "Subtracts.";
        0xfde6 F32x4Mul "f32x4.mul" None {F32x4 F32x4 -> F32x4 nan} Pure Wasm "Multiplies.";
        0xfde7 F32x4Div "f32x4.div" None {F32x4 F32x4 -> F32x4 nan} Pure Wasm "Divides.";
        0xfde8 F32x4Min "f32x4.min" None {F32x4 F32x4 -> F32x4 nan} Pure Wasm "Minimum; NaN if either is NaN.";
        0xfde9 F32x4Max "f32x4.max" None {F32x4 F32x4 -> F32x4 nan} Pure Wasm "Maximum; NaN if either is NaN.";
        0xfdea F32x4PMin "f32x4.pmin" None {F32x4 F32x4 -> F32x4 exact} Pure Wasm "The second where it is less than the first, else the first.";
        0xfdeb F32x4PMax "f32x4.pmax" None {F32x4 F32x4 -> F32x4 exact} Pure Wasm "The second where it is greater than the first, else the first.";
        0xfdec F64x2Abs "f64x2.abs" None {F64x2 -> F64x2 exact} Pure Wasm "Clears the signs.";
        0xfded F64x2Neg "f64x2.neg" None {F64x2 -> F64x2 exact} Pure Wasm "Flips the signs.";
        0xfdef F64x2Sqrt "f64x2.sqrt" None {F64x2 -> F64x2 nan} Pure Wasm "Square roots.";
        0xfdf0 F64x2Add "f64x2.add" None {F64x2 F64x2 -> F64x2 nan} Pure Wasm "Adds.";
        0xfdf1 F64x2Sub "f64x2.sub" None {F64x2 F64x2 -> F64x2 nan} Pure Wasm "Subtracts.";
        0xfdf2 F64x2Mul "f64x2.mul" None {F64x2 F64x2 -> F64x2 nan} Pure Wasm "Multiplies.";
        0xfdf3 F64x2Div "f64x2.div" None {F64x2 F64x2 -> F64x2 nan} Pure Wasm "Divides.";
        0xfdf4 F64x2Min "f64x2.min" None {F64x2 F64x2 -> F64x2 nan} Pure Wasm "Minimum; NaN if either is NaN.";
        0xfdf5 F64x2Max "f64x2.max" None {F64x2 F64x2 -> F64x2 nan} Pure Wasm "Maximum; NaN if either is NaN.";
        0xfdf6 F64x2PMin "f64x2.pmin" None {F64x2 F64x2 -> F64x2 exact} Pure Wasm "The second where it is less than the first, else the first.";
        0xfdf7 F64x2PMax "f64x2.pmax" None {F64x2 F64x2 -> F64x2 exact} Pure Wasm "The second where it is greater than the first, else the first.";
        0xfdf8 I32x4TruncSatF32x4S "i32x4.trunc_sat_f32x4_s" None {F32x4 -> I32x4} Pure Wasm "Converts towards zero, signed; saturates, NaN becomes 0.";
        0xfdf9 I32x4TruncSatF32x4U "i32x4.trunc_sat_f32x4_u" None {F32x4 -> I32x4} Pure Wasm "Converts towards zero, unsigned; saturates, NaN becomes 0.";
        0xfdfa F32x4ConvertI32x4S "f32x4.convert_i32x4_s" None {I32x4 -> F32x4 exact} Pure Wasm "Converts from signed, rounding to nearest.";
        0xfdfb F32x4ConvertI32x4U "f32x4.convert_i32x4_u" None {I32x4 -> F32x4 exact} Pure Wasm "Converts from unsigned, rounding to nearest.";
        0xfdfc I32x4TruncSatF64x2SZero "i32x4.trunc_sat_f64x2_s_zero" None {F64x2 -> I32x4} Pure Wasm "Converts towards zero, signed; saturates, NaN becomes 0; the upper lanes are zero.";
        0xfdfd I32x4TruncSatF64x2UZero "i32x4.trunc_sat_f64x2_u_zero" None {F64x2 -> I32x4} Pure Wasm "Converts towards zero, unsigned; saturates, NaN becomes 0; the upper lanes are zero.";
        0xfdfe F64x2ConvertLowI32x4S "f64x2.convert_low_i32x4_s" None {I32x4 -> F64x2 exact} Pure Wasm "Converts the two lower lanes from signed.";
        0xfdff F64x2ConvertLowI32x4U "f64x2.convert_low_i32x4_u" None {I32x4 -> F64x2 exact} Pure Wasm "Converts the two lower lanes from unsigned.";
    } };
}

/// The immediates of an opcode. [`crate::Imm`] documents their packing, [`crate::inst`] their encoding.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum ImmKind {
    /// Nothing.
    None,
    /// A signed 32-bit constant.
    I32,
    /// A signed 64-bit constant.
    I64,
    /// The bits of a 32-bit float.
    F32,
    /// The bits of a 64-bit float.
    F64,
    /// Any unsigned 32-bit number.
    Number,
    /// A local.
    Local,
    /// A global.
    Global,
    /// A function.
    Func,
    /// A label of the function's label table.
    Label,
    /// A label and a number of operands.
    LabelCount,
    /// A list of labels and a default.
    Labels,
    /// A function type and a table.
    TypeTable,
    /// A reference type.
    RefType,
    /// A table.
    Table,
    /// A destination and a source table.
    TableTable,
    /// An element segment and a table.
    ElemTable,
    /// An element segment.
    Elem,
    /// A memory.
    Memory,
    /// A destination and a source memory.
    MemoryMemory,
    /// A data segment and a memory.
    DataMemory,
    /// A data segment.
    Data,
    /// A memory and a static offset.
    Mem,
    /// A memory, a scale and a static offset.
    Indexed,
    /// The 16 bytes of a vector.
    V128,
    /// 16 lane indices into two vectors of 16 lanes each.
    Lanes,
    /// A lane.
    Lane,
    /// A memory, a static offset and a lane.
    MemLane,
}

/// The effect of an instruction besides its results.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// None: the results depend only on the operands and immediates.
    Pure,
    /// None, but it may trap.
    Trap,
    /// Reads the instance's state; may trap.
    Read,
    /// Writes the instance's state; may trap.
    Write,
    /// Calls a function.
    Call,
    /// Ends a basic block.
    Control,
    /// Moves operands; not part of the IR.
    Stack,
    /// Accesses a local; the IR has slot accesses instead.
    Local,
}

/// The opcodes with a first byte, by their second one.
macro_rules! second_bytes {
    ($prefix:ident $($code:literal $variant:ident)*) => {{
        let mut table = [None; 256];
        $(if $code >> 8 == $prefix as u32 {
            table[$code & 0xff] = Some(Op::$variant);
        })*
        table
    }};
}

macro_rules! define_op {
    ($(
        $code:literal $variant:ident $mnemonic:literal $imm:ident $(($($bytes:tt)*))? {$($sig:tt)*}
        $effect:ident $origin:ident $doc:literal;
    )*) => {
        /// An opcode. Discriminants follow the order of the table without gaps, so that tables indexed by
        /// opcode are small. [`Op::code`] is the encoding.
        #[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum Op {
            $(#[doc = concat!("`", $mnemonic, "`: ", $doc)] $variant,)*
        }

        impl Op {
            /// All opcodes, in the order of their codes.
            pub const ALL: &'static [Op] = &[$(Op::$variant),*];

            /// The name in the text form.
            pub const fn mnemonic(self) -> &'static str {
                match self { $(Op::$variant => $mnemonic,)* }
            }

            /// The immediates that follow.
            #[inline]
            pub const fn imm_kind(self) -> ImmKind {
                match self { $(Op::$variant => ImmKind::$imm,)* }
            }

            /// The operand and result types, or `None` if they depend on an immediate or on the operand
            /// stack.
            #[inline]
            pub const fn signature(self) -> Option<Signature> {
                ROWS[self as usize].signature
            }

            /// The effect of the instruction besides its results.
            #[inline]
            pub const fn effect(self) -> Effect {
                match self { $(Op::$variant => Effect::$effect,)* }
            }

            /// Description for the reference.
            pub const fn doc(self) -> &'static str {
                match self { $(Op::$variant => $doc,)* }
            }

            /// The opcode with this mnemonic.
            pub fn from_mnemonic(mnemonic: &str) -> Option<Op> {
                match mnemonic { $($mnemonic => Some(Op::$variant),)* _ => None }
            }
        }

        const CODES: [u16; Op::ALL.len()] = [$($code),*];

        const ROWS: &[Row; Op::ALL.len()] = &[$(row!($($sig)*)),*];

        const ACCESSED: &[Option<Accessed>; Op::ALL.len()] =
            &[$(accessed!($imm $(($($bytes)*))?)),*];

        const OP_OF_BYTE: [Option<Op>; 256] = {
            let mut table = [None; 256];
            $(if $code < 0x100 {
                table[$code & 0xff] = Some(Op::$variant);
            })*
            table
        };

        const PAIR_OF_SECOND_BYTE: [Option<Op>; 256] = second_bytes!(PAIR_PREFIX $($code $variant)*);

        const VECTOR_OF_SECOND_BYTE: [Option<Op>; 256] =
            second_bytes!(VECTOR_PREFIX $($code $variant)*);
    };
}

for_each_op!(define_op);

/// The first byte of the two-byte opcodes of integers with two results.
pub const PAIR_PREFIX: u8 = 0xfc;

/// The first byte of the two-byte SIMD opcodes.
pub const VECTOR_PREFIX: u8 = 0xfd;

impl Op {
    /// Returns the opcode with this one-byte encoding.
    #[inline]
    pub const fn from_byte(byte: u8) -> Option<Op> {
        OP_OF_BYTE[byte as usize]
    }

    /// Returns the opcode with these two bytes, the first of which is [`PAIR_PREFIX`] or [`VECTOR_PREFIX`].
    #[inline]
    pub const fn from_two_bytes(first: u8, second: u8) -> Option<Op> {
        match first {
            PAIR_PREFIX => PAIR_OF_SECOND_BYTE[second as usize],
            VECTOR_PREFIX => VECTOR_OF_SECOND_BYTE[second as usize],
            _ => None,
        }
    }

    /// The encoding of the opcode: one byte, or the two bytes of this number, the higher one first.
    #[inline]
    pub const fn code(self) -> u16 {
        CODES[self as usize]
    }

    /// Whether this is a SIMD opcode, encoded in two bytes.
    #[inline]
    pub const fn is_vector(self) -> bool {
        self as u16 >= Op::V128Load as u16
    }

    /// Whether the instruction ends a basic block. This includes `br_if`, although control may continue after
    /// it.
    #[inline]
    pub const fn is_terminator(self) -> bool {
        matches!(self.effect(), Effect::Control)
    }

    /// Whether the instruction is floating-point arithmetic that may return a NaN with bits chosen by the
    /// machine. The option `canonical_nans` fixes these bits. Sign operations, moves and `reinterpret` keep
    /// bits and are not included.
    pub const fn makes_nan(self) -> bool {
        self.nan_type().is_some()
    }

    /// The type of the result, or of each of its lanes, if [`makes_nan`](Self::makes_nan) holds.
    pub const fn nan_type(self) -> Option<ValType> {
        ROWS[self as usize].nan
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_mnemonics_are_unique_and_round_trip() {
        for (i, &op) in Op::ALL.iter().enumerate() {
            let [first, second] = op.code().to_be_bytes();
            match first {
                0 => assert_eq!(Op::from_byte(second), Some(op)),
                _ => assert_eq!(Op::from_two_bytes(first, second), Some(op)),
            }
            assert_eq!(op.is_vector(), first == VECTOR_PREFIX, "{op:?}");
            assert_eq!(Op::from_mnemonic(op.mnemonic()), Some(op));
            assert_eq!(op as usize, i, "{op:?}");
            if i > 0 {
                assert!(Op::ALL[i - 1].code() < op.code(), "{op:?} is out of order");
            }
        }
    }

    #[test]
    fn there_are_all_vector_operations_of_webassembly_and_their_parts_fit() {
        let vectors = Op::ALL.iter().filter(|op| op.is_vector());
        assert_eq!(vectors.count(), 236);
        assert_eq!([PAIR_PREFIX, VECTOR_PREFIX].map(Op::from_byte), [None; 2]);
        for &op in Op::ALL {
            let names_lanes =
                matches!(op.imm_kind(), ImmKind::Lane | ImmKind::Lanes | ImmKind::MemLane);
            assert_eq!(op.n_lanes().is_some(), names_lanes, "{op:?}");
            let Some(access) = op.vector_access() else { continue };
            let sig = op.signature().expect("accesses have fixed signatures");
            assert_eq!(access.store, sig.results.is_empty(), "{op:?}");
            match access.part {
                VectorPart::Lane => assert_eq!(op.n_lanes(), Some(16 / access.bytes), "{op:?}"),
                _ => assert_eq!(sig.params, [ValType::I32], "{op:?}"),
            }
        }
    }

    #[test]
    fn accesses_agree_with_signatures() {
        for &op in Op::ALL {
            let is_access =
                matches!(op.imm_kind(), ImmKind::Mem | ImmKind::Indexed | ImmKind::MemLane);
            assert_eq!(op.access_bytes().is_some(), is_access, "{op:?}");
            assert!(op.access().is_none() || op.vector_access().is_none(), "{op:?}");
            let Some(access) = op.access() else { continue };
            let sig = op.signature().expect("accesses have fixed signatures");
            let addresses = if access.indexed { 2 } else { 1 };
            if access.store {
                assert_eq!(sig.params[addresses..], [access.ty], "{op:?}");
            } else {
                assert_eq!(sig.params.len(), addresses, "{op:?}");
                assert_eq!(sig.results, [access.ty], "{op:?}");
            }
        }
    }
}
