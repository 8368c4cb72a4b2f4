//! The opcode table, the single source of the instruction set.
//!
//! [`for_each_op!`](crate::for_each_op) hands every row to a macro of the caller's choice. Encoding, decoding, the text
//! form, the verifier's fixed signatures, the reference (`vmrun ops`) and the IR derive from it. A new
//! opcode is one row here, one arm of the interpreter and one arm of the lowering; the compiler names
//! the places that are missing.
//!
//! A row is `byte Variant "mnemonic" ImmKind {signature} Effect "doc";`. A signature lists the operand
//! types, deepest first, and the result types; `special` marks the few whose types depend on an
//! immediate or on the operand stack, which the verifier treats one by one.

use crate::types::ValType;

/// Calls the macro `$m` with all rows of the opcode table.
#[macro_export]
macro_rules! for_each_op {
    ($m:ident) => { $m! {
        // Control flow.
        0x00 Unreachable "unreachable" None {special} Control "Traps.";
        0x01 Nop "nop" None {->} Stack "Does nothing.";
        0x02 Br "br" Label {special} Control "Goes to the label. The operand stack has the shape of the label.";
        0x03 BrIf "br_if" Label {special} Control "Pops an `i32` and goes to the label if it is not zero. The rest of the operand stack has the shape of the label.";
        0x04 BrTable "br_table" Labels {special} Control "Pops an `i32` and goes to the label that it indexes, unsigned, or to the last one, the default. All labels have the same shape, the rest of the operand stack.";
        0x05 Return "return" None {special} Control "Returns the operand stack, which holds exactly the results.";
        0x06 Call "call" Func {special} Call "Pops the parameters, calls the function, pushes its results.";
        0x07 CallIndirect "call_indirect" TypeTable {special} Call "Pops an `i32` index into the table, then the parameters; calls the function there, which has exactly the type.";
        0x08 ReturnCall "return_call" Func {special} Control "Calls the function in place of this one. The operand stack holds exactly its parameters.";
        0x09 ReturnCallIndirect "return_call_indirect" TypeTable {special} Control "Calls the function at an index of a table in place of this one.";
        // Operand stack. `a` is the deepest operand named.
        0x10 Drop "drop" None {special} Stack "Removes the top: `a` becomes nothing.";
        0x11 Dup "dup" None {special} Stack "Copies the top: `a` becomes `a a`.";
        0x12 Swap "swap" None {special} Stack "Exchanges the two topmost: `a b` becomes `b a`.";
        0x13 Over "over" None {special} Stack "Copies the second from the top: `a b` becomes `a b a`.";
        0x14 Rot "rot" None {special} Stack "Brings the third from the top to the top: `a b c` becomes `b c a`.";
        0x15 Select "select" None {special} Pure "Pops an `i32`, then `b` and `a` of one type; pushes `a` if the `i32` is not zero, else `b`.";
        // Locals and globals.
        0x18 LocalGet "local.get" Local {special} Local "Pushes the local.";
        0x19 LocalSet "local.set" Local {special} Local "Pops a value into the local.";
        0x1a LocalTee "local.tee" Local {special} Local "Copies the top into the local.";
        0x1b LocalAddr "local.addr" Local {special} Local "Pushes the linear-memory address of the local, which is a number.";
        0x1c GlobalGet "global.get" Global {special} Read "Pushes the global.";
        0x1d GlobalSet "global.set" Global {special} Write "Pops a value into the global, which is mutable.";
        // References and tables.
        0x20 RefNull "ref.null" RefType {special} Pure "Pushes the null reference of the type.";
        0x21 RefIsNull "ref.is_null" None {special} Pure "Pops a reference, pushes 1 if it is null, else 0.";
        0x22 RefFunc "ref.func" Func {-> FuncRef} Read "Pushes a reference to the function.";
        0x23 TableGet "table.get" Table {special} Read "Pops an index, pushes the element.";
        0x24 TableSet "table.set" Table {special} Write "Pops an element, then an index, and stores the element there.";
        0x25 TableSize "table.size" Table {-> I32} Read "Pushes the number of elements.";
        0x26 TableGrow "table.grow" Table {special} Write "Pops a number of elements, then the element to fill them with; grows the table and pushes its old size, or -1 if it cannot grow.";
        0x27 TableFill "table.fill" Table {special} Write "Pops a length, an element and an index; stores the element that many times.";
        0x28 TableCopy "table.copy" TableTable {I32 I32 I32 ->} Write "Pops a length, a source index and a destination index; copies as if by an intermediate buffer.";
        0x29 TableInit "table.init" ElemTable {I32 I32 I32 ->} Write "Pops a length, an index into the element segment and an index into the table; copies from the segment.";
        0x2a ElemDrop "elem.drop" Elem {->} Write "Makes the element segment empty.";
        // Constants.
        0x30 I32Const "i32.const" I32 {-> I32} Pure "Pushes the constant.";
        0x31 I64Const "i64.const" I64 {-> I64} Pure "Pushes the constant.";
        0x32 F32Const "f32.const" F32 {-> F32} Pure "Pushes the constant.";
        0x33 F64Const "f64.const" F64 {-> F64} Pure "Pushes the constant.";
        // Whole memory.
        0x38 MemorySize "memory.size" Memory {-> I32} Read "Pushes the size in pages of 64 KiB.";
        0x39 MemoryGrow "memory.grow" Memory {I32 -> I32} Write "Pops a number of pages to add; pushes the old size in pages, or -1 if the memory cannot grow.";
        0x3a MemoryFill "memory.fill" Memory {I32 I32 I32 ->} Write "Pops a length, a byte value and an address; fills.";
        0x3b MemoryCopy "memory.copy" MemoryMemory {I32 I32 I32 ->} Write "Pops a length, a source address and a destination address; copies as if by an intermediate buffer.";
        0x3c MemoryInit "memory.init" DataMemory {I32 I32 I32 ->} Write "Pops a length, an offset into the data segment and an address; copies from the segment.";
        0x3d DataDrop "data.drop" Data {->} Write "Makes the data segment empty.";
        // Memory accesses at `u64(address) + offset`.
        0x40 I32Load "i32.load" Mem {I32 -> I32} Read "Pops an address; loads 4 bytes.";
        0x41 I64Load "i64.load" Mem {I32 -> I64} Read "Pops an address; loads 8 bytes.";
        0x42 F32Load "f32.load" Mem {I32 -> F32} Read "Pops an address; loads 4 bytes.";
        0x43 F64Load "f64.load" Mem {I32 -> F64} Read "Pops an address; loads 8 bytes.";
        0x44 I32Load8S "i32.load8_s" Mem {I32 -> I32} Read "Pops an address; loads 1 byte, sign-extended.";
        0x45 I32Load8U "i32.load8_u" Mem {I32 -> I32} Read "Pops an address; loads 1 byte, zero-extended.";
        0x46 I32Load16S "i32.load16_s" Mem {I32 -> I32} Read "Pops an address; loads 2 bytes, sign-extended.";
        0x47 I32Load16U "i32.load16_u" Mem {I32 -> I32} Read "Pops an address; loads 2 bytes, zero-extended.";
        0x48 I64Load8S "i64.load8_s" Mem {I32 -> I64} Read "Pops an address; loads 1 byte, sign-extended.";
        0x49 I64Load8U "i64.load8_u" Mem {I32 -> I64} Read "Pops an address; loads 1 byte, zero-extended.";
        0x4a I64Load16S "i64.load16_s" Mem {I32 -> I64} Read "Pops an address; loads 2 bytes, sign-extended.";
        0x4b I64Load16U "i64.load16_u" Mem {I32 -> I64} Read "Pops an address; loads 2 bytes, zero-extended.";
        0x4c I64Load32S "i64.load32_s" Mem {I32 -> I64} Read "Pops an address; loads 4 bytes, sign-extended.";
        0x4d I64Load32U "i64.load32_u" Mem {I32 -> I64} Read "Pops an address; loads 4 bytes, zero-extended.";
        0x4e I32Store "i32.store" Mem {I32 I32 ->} Write "Pops a value, then an address; stores its 4 bytes.";
        0x4f I64Store "i64.store" Mem {I32 I64 ->} Write "Pops a value, then an address; stores its 8 bytes.";
        0x50 F32Store "f32.store" Mem {I32 F32 ->} Write "Pops a value, then an address; stores its 4 bytes.";
        0x51 F64Store "f64.store" Mem {I32 F64 ->} Write "Pops a value, then an address; stores its 8 bytes.";
        0x52 I32Store8 "i32.store8" Mem {I32 I32 ->} Write "Pops a value, then an address; stores the low 1 byte of it.";
        0x53 I32Store16 "i32.store16" Mem {I32 I32 ->} Write "Pops a value, then an address; stores the low 2 bytes of it.";
        0x54 I64Store8 "i64.store8" Mem {I32 I64 ->} Write "Pops a value, then an address; stores the low 1 byte of it.";
        0x55 I64Store16 "i64.store16" Mem {I32 I64 ->} Write "Pops a value, then an address; stores the low 2 bytes of it.";
        0x56 I64Store32 "i64.store32" Mem {I32 I64 ->} Write "Pops a value, then an address; stores the low 4 bytes of it.";
        // Memory accesses at `u64(base) + (u64(index) << scale) + offset`, unsigned, without wrapping.
        0x58 I32LoadIndexed "i32.load_indexed" Indexed {I32 I32 -> I32} Read "Pops an index and a base; loads 4 bytes.";
        0x59 I64LoadIndexed "i64.load_indexed" Indexed {I32 I32 -> I64} Read "Pops an index and a base; loads 8 bytes.";
        0x5a F32LoadIndexed "f32.load_indexed" Indexed {I32 I32 -> F32} Read "Pops an index and a base; loads 4 bytes.";
        0x5b F64LoadIndexed "f64.load_indexed" Indexed {I32 I32 -> F64} Read "Pops an index and a base; loads 8 bytes.";
        0x5c I32Load8SIndexed "i32.load8_s_indexed" Indexed {I32 I32 -> I32} Read "Pops an index and a base; loads 1 byte, sign-extended.";
        0x5d I32Load8UIndexed "i32.load8_u_indexed" Indexed {I32 I32 -> I32} Read "Pops an index and a base; loads 1 byte, zero-extended.";
        0x5e I32Load16SIndexed "i32.load16_s_indexed" Indexed {I32 I32 -> I32} Read "Pops an index and a base; loads 2 bytes, sign-extended.";
        0x5f I32Load16UIndexed "i32.load16_u_indexed" Indexed {I32 I32 -> I32} Read "Pops an index and a base; loads 2 bytes, zero-extended.";
        0x60 I64Load8SIndexed "i64.load8_s_indexed" Indexed {I32 I32 -> I64} Read "Pops an index and a base; loads 1 byte, sign-extended.";
        0x61 I64Load8UIndexed "i64.load8_u_indexed" Indexed {I32 I32 -> I64} Read "Pops an index and a base; loads 1 byte, zero-extended.";
        0x62 I64Load16SIndexed "i64.load16_s_indexed" Indexed {I32 I32 -> I64} Read "Pops an index and a base; loads 2 bytes, sign-extended.";
        0x63 I64Load16UIndexed "i64.load16_u_indexed" Indexed {I32 I32 -> I64} Read "Pops an index and a base; loads 2 bytes, zero-extended.";
        0x64 I64Load32SIndexed "i64.load32_s_indexed" Indexed {I32 I32 -> I64} Read "Pops an index and a base; loads 4 bytes, sign-extended.";
        0x65 I64Load32UIndexed "i64.load32_u_indexed" Indexed {I32 I32 -> I64} Read "Pops an index and a base; loads 4 bytes, zero-extended.";
        0x66 I32StoreIndexed "i32.store_indexed" Indexed {I32 I32 I32 ->} Write "Pops a value, an index and a base; stores its 4 bytes.";
        0x67 I64StoreIndexed "i64.store_indexed" Indexed {I32 I32 I64 ->} Write "Pops a value, an index and a base; stores its 8 bytes.";
        0x68 F32StoreIndexed "f32.store_indexed" Indexed {I32 I32 F32 ->} Write "Pops a value, an index and a base; stores its 4 bytes.";
        0x69 F64StoreIndexed "f64.store_indexed" Indexed {I32 I32 F64 ->} Write "Pops a value, an index and a base; stores its 8 bytes.";
        0x6a I32Store8Indexed "i32.store8_indexed" Indexed {I32 I32 I32 ->} Write "Pops a value, an index and a base; stores the low 1 byte of it.";
        0x6b I32Store16Indexed "i32.store16_indexed" Indexed {I32 I32 I32 ->} Write "Pops a value, an index and a base; stores the low 2 bytes of it.";
        0x6c I64Store8Indexed "i64.store8_indexed" Indexed {I32 I32 I64 ->} Write "Pops a value, an index and a base; stores the low 1 byte of it.";
        0x6d I64Store16Indexed "i64.store16_indexed" Indexed {I32 I32 I64 ->} Write "Pops a value, an index and a base; stores the low 2 bytes of it.";
        0x6e I64Store32Indexed "i64.store32_indexed" Indexed {I32 I32 I64 ->} Write "Pops a value, an index and a base; stores the low 4 bytes of it.";
        // Numbers. The semantics are those of WebAssembly; [`crate::numeric`] computes them.
        0x70 I32Eqz "i32.eqz" None {I32 -> I32} Pure "Tests for zero.";
        0x71 I32Eq "i32.eq" None {I32 I32 -> I32} Pure "Equal.";
        0x72 I32Ne "i32.ne" None {I32 I32 -> I32} Pure "Not equal.";
        0x73 I32LtS "i32.lt_s" None {I32 I32 -> I32} Pure "Less than, signed.";
        0x74 I32LtU "i32.lt_u" None {I32 I32 -> I32} Pure "Less than, unsigned.";
        0x75 I32GtS "i32.gt_s" None {I32 I32 -> I32} Pure "Greater than, signed.";
        0x76 I32GtU "i32.gt_u" None {I32 I32 -> I32} Pure "Greater than, unsigned.";
        0x77 I32LeS "i32.le_s" None {I32 I32 -> I32} Pure "Less or equal, signed.";
        0x78 I32LeU "i32.le_u" None {I32 I32 -> I32} Pure "Less or equal, unsigned.";
        0x79 I32GeS "i32.ge_s" None {I32 I32 -> I32} Pure "Greater or equal, signed.";
        0x7a I32GeU "i32.ge_u" None {I32 I32 -> I32} Pure "Greater or equal, unsigned.";
        0x7b I64Eqz "i64.eqz" None {I64 -> I32} Pure "Tests for zero.";
        0x7c I64Eq "i64.eq" None {I64 I64 -> I32} Pure "Equal.";
        0x7d I64Ne "i64.ne" None {I64 I64 -> I32} Pure "Not equal.";
        0x7e I64LtS "i64.lt_s" None {I64 I64 -> I32} Pure "Less than, signed.";
        0x7f I64LtU "i64.lt_u" None {I64 I64 -> I32} Pure "Less than, unsigned.";
        0x80 I64GtS "i64.gt_s" None {I64 I64 -> I32} Pure "Greater than, signed.";
        0x81 I64GtU "i64.gt_u" None {I64 I64 -> I32} Pure "Greater than, unsigned.";
        0x82 I64LeS "i64.le_s" None {I64 I64 -> I32} Pure "Less or equal, signed.";
        0x83 I64LeU "i64.le_u" None {I64 I64 -> I32} Pure "Less or equal, unsigned.";
        0x84 I64GeS "i64.ge_s" None {I64 I64 -> I32} Pure "Greater or equal, signed.";
        0x85 I64GeU "i64.ge_u" None {I64 I64 -> I32} Pure "Greater or equal, unsigned.";
        0x86 F32Eq "f32.eq" None {F32 F32 -> I32} Pure "Equal.";
        0x87 F32Ne "f32.ne" None {F32 F32 -> I32} Pure "Not equal or unordered.";
        0x88 F32Lt "f32.lt" None {F32 F32 -> I32} Pure "Less than.";
        0x89 F32Gt "f32.gt" None {F32 F32 -> I32} Pure "Greater than.";
        0x8a F32Le "f32.le" None {F32 F32 -> I32} Pure "Less or equal.";
        0x8b F32Ge "f32.ge" None {F32 F32 -> I32} Pure "Greater or equal.";
        0x8c F64Eq "f64.eq" None {F64 F64 -> I32} Pure "Equal.";
        0x8d F64Ne "f64.ne" None {F64 F64 -> I32} Pure "Not equal or unordered.";
        0x8e F64Lt "f64.lt" None {F64 F64 -> I32} Pure "Less than.";
        0x8f F64Gt "f64.gt" None {F64 F64 -> I32} Pure "Greater than.";
        0x90 F64Le "f64.le" None {F64 F64 -> I32} Pure "Less or equal.";
        0x91 F64Ge "f64.ge" None {F64 F64 -> I32} Pure "Greater or equal.";
        0x92 I32Clz "i32.clz" None {I32 -> I32} Pure "Counts leading zero bits.";
        0x93 I32Ctz "i32.ctz" None {I32 -> I32} Pure "Counts trailing zero bits.";
        0x94 I32Popcnt "i32.popcnt" None {I32 -> I32} Pure "Counts one bits.";
        0x95 I32Add "i32.add" None {I32 I32 -> I32} Pure "Adds, wrapping.";
        0x96 I32Sub "i32.sub" None {I32 I32 -> I32} Pure "Subtracts, wrapping.";
        0x97 I32Mul "i32.mul" None {I32 I32 -> I32} Pure "Multiplies, wrapping.";
        0x98 I32DivS "i32.div_s" None {I32 I32 -> I32} Trap "Divides, signed, towards zero; traps on zero and on overflow.";
        0x99 I32DivU "i32.div_u" None {I32 I32 -> I32} Trap "Divides, unsigned; traps on zero.";
        0x9a I32RemS "i32.rem_s" None {I32 I32 -> I32} Trap "Remainder with the sign of the dividend; traps on zero.";
        0x9b I32RemU "i32.rem_u" None {I32 I32 -> I32} Trap "Remainder, unsigned; traps on zero.";
        0x9c I32And "i32.and" None {I32 I32 -> I32} Pure "Bitwise and.";
        0x9d I32Or "i32.or" None {I32 I32 -> I32} Pure "Bitwise or.";
        0x9e I32Xor "i32.xor" None {I32 I32 -> I32} Pure "Bitwise exclusive or.";
        0x9f I32Shl "i32.shl" None {I32 I32 -> I32} Pure "Shifts left by the count modulo the width.";
        0xa0 I32ShrS "i32.shr_s" None {I32 I32 -> I32} Pure "Shifts right, copying the sign, by the count modulo the width.";
        0xa1 I32ShrU "i32.shr_u" None {I32 I32 -> I32} Pure "Shifts right, filling with zero, by the count modulo the width.";
        0xa2 I32Rotl "i32.rotl" None {I32 I32 -> I32} Pure "Rotates left.";
        0xa3 I32Rotr "i32.rotr" None {I32 I32 -> I32} Pure "Rotates right.";
        0xa4 I64Clz "i64.clz" None {I64 -> I64} Pure "Counts leading zero bits.";
        0xa5 I64Ctz "i64.ctz" None {I64 -> I64} Pure "Counts trailing zero bits.";
        0xa6 I64Popcnt "i64.popcnt" None {I64 -> I64} Pure "Counts one bits.";
        0xa7 I64Add "i64.add" None {I64 I64 -> I64} Pure "Adds, wrapping.";
        0xa8 I64Sub "i64.sub" None {I64 I64 -> I64} Pure "Subtracts, wrapping.";
        0xa9 I64Mul "i64.mul" None {I64 I64 -> I64} Pure "Multiplies, wrapping.";
        0xaa I64DivS "i64.div_s" None {I64 I64 -> I64} Trap "Divides, signed, towards zero; traps on zero and on overflow.";
        0xab I64DivU "i64.div_u" None {I64 I64 -> I64} Trap "Divides, unsigned; traps on zero.";
        0xac I64RemS "i64.rem_s" None {I64 I64 -> I64} Trap "Remainder with the sign of the dividend; traps on zero.";
        0xad I64RemU "i64.rem_u" None {I64 I64 -> I64} Trap "Remainder, unsigned; traps on zero.";
        0xae I64And "i64.and" None {I64 I64 -> I64} Pure "Bitwise and.";
        0xaf I64Or "i64.or" None {I64 I64 -> I64} Pure "Bitwise or.";
        0xb0 I64Xor "i64.xor" None {I64 I64 -> I64} Pure "Bitwise exclusive or.";
        0xb1 I64Shl "i64.shl" None {I64 I64 -> I64} Pure "Shifts left by the count modulo the width.";
        0xb2 I64ShrS "i64.shr_s" None {I64 I64 -> I64} Pure "Shifts right, copying the sign, by the count modulo the width.";
        0xb3 I64ShrU "i64.shr_u" None {I64 I64 -> I64} Pure "Shifts right, filling with zero, by the count modulo the width.";
        0xb4 I64Rotl "i64.rotl" None {I64 I64 -> I64} Pure "Rotates left.";
        0xb5 I64Rotr "i64.rotr" None {I64 I64 -> I64} Pure "Rotates right.";
        0xb6 F32Abs "f32.abs" None {F32 -> F32} Pure "Clears the sign.";
        0xb7 F32Neg "f32.neg" None {F32 -> F32} Pure "Flips the sign.";
        0xb8 F32Ceil "f32.ceil" None {F32 -> F32} Pure "Rounds up.";
        0xb9 F32Floor "f32.floor" None {F32 -> F32} Pure "Rounds down.";
        0xba F32Trunc "f32.trunc" None {F32 -> F32} Pure "Rounds towards zero.";
        0xbb F32Nearest "f32.nearest" None {F32 -> F32} Pure "Rounds to nearest, ties to even.";
        0xbc F32Sqrt "f32.sqrt" None {F32 -> F32} Pure "Square root.";
        0xbd F32Add "f32.add" None {F32 F32 -> F32} Pure "Adds.";
        0xbe F32Sub "f32.sub" None {F32 F32 -> F32} Pure "Subtracts.";
        0xbf F32Mul "f32.mul" None {F32 F32 -> F32} Pure "Multiplies.";
        0xc0 F32Div "f32.div" None {F32 F32 -> F32} Pure "Divides.";
        0xc1 F32Min "f32.min" None {F32 F32 -> F32} Pure "Minimum; NaN if either is NaN.";
        0xc2 F32Max "f32.max" None {F32 F32 -> F32} Pure "Maximum; NaN if either is NaN.";
        0xc3 F32Copysign "f32.copysign" None {F32 F32 -> F32} Pure "The first with the sign of the second.";
        0xc4 F64Abs "f64.abs" None {F64 -> F64} Pure "Clears the sign.";
        0xc5 F64Neg "f64.neg" None {F64 -> F64} Pure "Flips the sign.";
        0xc6 F64Ceil "f64.ceil" None {F64 -> F64} Pure "Rounds up.";
        0xc7 F64Floor "f64.floor" None {F64 -> F64} Pure "Rounds down.";
        0xc8 F64Trunc "f64.trunc" None {F64 -> F64} Pure "Rounds towards zero.";
        0xc9 F64Nearest "f64.nearest" None {F64 -> F64} Pure "Rounds to nearest, ties to even.";
        0xca F64Sqrt "f64.sqrt" None {F64 -> F64} Pure "Square root.";
        0xcb F64Add "f64.add" None {F64 F64 -> F64} Pure "Adds.";
        0xcc F64Sub "f64.sub" None {F64 F64 -> F64} Pure "Subtracts.";
        0xcd F64Mul "f64.mul" None {F64 F64 -> F64} Pure "Multiplies.";
        0xce F64Div "f64.div" None {F64 F64 -> F64} Pure "Divides.";
        0xcf F64Min "f64.min" None {F64 F64 -> F64} Pure "Minimum; NaN if either is NaN.";
        0xd0 F64Max "f64.max" None {F64 F64 -> F64} Pure "Maximum; NaN if either is NaN.";
        0xd1 F64Copysign "f64.copysign" None {F64 F64 -> F64} Pure "The first with the sign of the second.";
        0xd2 I32WrapI64 "i32.wrap_i64" None {I64 -> I32} Pure "The low 32 bits.";
        0xd3 I32TruncF32S "i32.trunc_f32_s" None {F32 -> I32} Trap "Converts towards zero, signed; traps on NaN and overflow.";
        0xd4 I32TruncF32U "i32.trunc_f32_u" None {F32 -> I32} Trap "Converts towards zero, unsigned; traps on NaN and overflow.";
        0xd5 I32TruncF64S "i32.trunc_f64_s" None {F64 -> I32} Trap "Converts towards zero, signed; traps on NaN and overflow.";
        0xd6 I32TruncF64U "i32.trunc_f64_u" None {F64 -> I32} Trap "Converts towards zero, unsigned; traps on NaN and overflow.";
        0xd7 I64ExtendI32S "i64.extend_i32_s" None {I32 -> I64} Pure "Sign-extends.";
        0xd8 I64ExtendI32U "i64.extend_i32_u" None {I32 -> I64} Pure "Zero-extends.";
        0xd9 I64TruncF32S "i64.trunc_f32_s" None {F32 -> I64} Trap "Converts towards zero, signed; traps on NaN and overflow.";
        0xda I64TruncF32U "i64.trunc_f32_u" None {F32 -> I64} Trap "Converts towards zero, unsigned; traps on NaN and overflow.";
        0xdb I64TruncF64S "i64.trunc_f64_s" None {F64 -> I64} Trap "Converts towards zero, signed; traps on NaN and overflow.";
        0xdc I64TruncF64U "i64.trunc_f64_u" None {F64 -> I64} Trap "Converts towards zero, unsigned; traps on NaN and overflow.";
        0xdd F32ConvertI32S "f32.convert_i32_s" None {I32 -> F32} Pure "Converts from signed, rounding to nearest.";
        0xde F32ConvertI32U "f32.convert_i32_u" None {I32 -> F32} Pure "Converts from unsigned, rounding to nearest.";
        0xdf F32ConvertI64S "f32.convert_i64_s" None {I64 -> F32} Pure "Converts from signed, rounding to nearest.";
        0xe0 F32ConvertI64U "f32.convert_i64_u" None {I64 -> F32} Pure "Converts from unsigned, rounding to nearest.";
        0xe1 F32DemoteF64 "f32.demote_f64" None {F64 -> F32} Pure "Rounds to the narrower format.";
        0xe2 F64ConvertI32S "f64.convert_i32_s" None {I32 -> F64} Pure "Converts from signed, rounding to nearest.";
        0xe3 F64ConvertI32U "f64.convert_i32_u" None {I32 -> F64} Pure "Converts from unsigned, rounding to nearest.";
        0xe4 F64ConvertI64S "f64.convert_i64_s" None {I64 -> F64} Pure "Converts from signed, rounding to nearest.";
        0xe5 F64ConvertI64U "f64.convert_i64_u" None {I64 -> F64} Pure "Converts from unsigned, rounding to nearest.";
        0xe6 F64PromoteF32 "f64.promote_f32" None {F32 -> F64} Pure "Converts to the wider format.";
        0xe7 I32ReinterpretF32 "i32.reinterpret_f32" None {F32 -> I32} Pure "The same bits.";
        0xe8 I64ReinterpretF64 "i64.reinterpret_f64" None {F64 -> I64} Pure "The same bits.";
        0xe9 F32ReinterpretI32 "f32.reinterpret_i32" None {I32 -> F32} Pure "The same bits.";
        0xea F64ReinterpretI64 "f64.reinterpret_i64" None {I64 -> F64} Pure "The same bits.";
        0xeb I32Extend8S "i32.extend8_s" None {I32 -> I32} Pure "Sign-extends the low 8 bits.";
        0xec I32Extend16S "i32.extend16_s" None {I32 -> I32} Pure "Sign-extends the low 16 bits.";
        0xed I64Extend8S "i64.extend8_s" None {I64 -> I64} Pure "Sign-extends the low 8 bits.";
        0xee I64Extend16S "i64.extend16_s" None {I64 -> I64} Pure "Sign-extends the low 16 bits.";
        0xef I64Extend32S "i64.extend32_s" None {I64 -> I64} Pure "Sign-extends the low 32 bits.";
        0xf0 I32TruncSatF32S "i32.trunc_sat_f32_s" None {F32 -> I32} Pure "Converts towards zero, signed; saturates, NaN gives 0.";
        0xf1 I32TruncSatF32U "i32.trunc_sat_f32_u" None {F32 -> I32} Pure "Converts towards zero, unsigned; saturates, NaN gives 0.";
        0xf2 I32TruncSatF64S "i32.trunc_sat_f64_s" None {F64 -> I32} Pure "Converts towards zero, signed; saturates, NaN gives 0.";
        0xf3 I32TruncSatF64U "i32.trunc_sat_f64_u" None {F64 -> I32} Pure "Converts towards zero, unsigned; saturates, NaN gives 0.";
        0xf4 I64TruncSatF32S "i64.trunc_sat_f32_s" None {F32 -> I64} Pure "Converts towards zero, signed; saturates, NaN gives 0.";
        0xf5 I64TruncSatF32U "i64.trunc_sat_f32_u" None {F32 -> I64} Pure "Converts towards zero, unsigned; saturates, NaN gives 0.";
        0xf6 I64TruncSatF64S "i64.trunc_sat_f64_s" None {F64 -> I64} Pure "Converts towards zero, signed; saturates, NaN gives 0.";
        0xf7 I64TruncSatF64U "i64.trunc_sat_f64_u" None {F64 -> I64} Pure "Converts towards zero, unsigned; saturates, NaN gives 0.";
    } };
}

/// Which immediates follow an opcode; [`crate::Imm`] says how each is packed and encoded.
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
    /// A local.
    Local,
    /// A global.
    Global,
    /// A function.
    Func,
    /// A label of the function's label table.
    Label,
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
}

/// What an instruction does besides computing its results.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Nothing: the results depend on the operands and immediates only.
    Pure,
    /// Nothing, but it may trap.
    Trap,
    /// Reads the instance's state; may trap.
    Read,
    /// Writes the instance's state; may trap.
    Write,
    /// Calls and comes back.
    Call,
    /// Ends a basic block.
    Control,
    /// Moves operands about; the IR does not have it.
    Stack,
    /// Accesses a local; the IR has slot accesses instead.
    Local,
}

/// The fixed signature of an opcode.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Operand types, deepest first.
    pub params: &'static [ValType],
    /// Result types.
    pub results: &'static [ValType],
}

macro_rules! signature {
    ({special}) => {
        None
    };
    ({$($param:ident)* -> $($result:ident)*}) => {
        Some(Signature {
            params: &[$(ValType::$param),*],
            results: &[$(ValType::$result),*],
        })
    };
}

macro_rules! define_op {
    ($($byte:literal $variant:ident $mnemonic:literal $imm:ident $sig:tt $effect:ident $doc:literal;)*) => {
        /// An opcode; its number is the byte that encodes it.
        #[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Op {
            $(#[doc = concat!("`", $mnemonic, "`: ", $doc)] $variant = $byte,)*
        }

        impl Op {
            /// All opcodes, in the order of their bytes.
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

            /// The operand and result types, or `None` where they depend on an immediate or on the
            /// operand stack.
            #[inline]
            pub const fn signature(self) -> Option<Signature> {
                match self { $(Op::$variant => signature!($sig),)* }
            }

            /// What the instruction does besides computing its results.
            #[inline]
            pub const fn effect(self) -> Effect {
                match self { $(Op::$variant => Effect::$effect,)* }
            }

            /// What the instruction does, in a sentence for the reference.
            pub const fn doc(self) -> &'static str {
                match self { $(Op::$variant => $doc,)* }
            }

            /// The opcode with this mnemonic.
            pub fn from_mnemonic(mnemonic: &str) -> Option<Op> {
                match mnemonic { $($mnemonic => Some(Op::$variant),)* _ => None }
            }
        }

        const OP_OF_BYTE: [Option<Op>; 256] = {
            let mut table = [None; 256];
            $(table[$byte] = Some(Op::$variant);)*
            table
        };
    };
}

for_each_op!(define_op);

/// A byte that no opcode will ever have: it announces the 128-bit vector operations, which are not
/// part of this version.
pub const VECTOR_PREFIX: u8 = 0xfd;

impl Op {
    /// The opcode that this byte encodes.
    #[inline]
    pub const fn from_byte(byte: u8) -> Option<Op> {
        OP_OF_BYTE[byte as usize]
    }

    /// The byte that encodes the opcode.
    #[inline]
    pub const fn byte(self) -> u8 {
        self as u8
    }

    /// Whether the instruction ends a basic block. `br_if` does too, although control may go on
    /// behind it.
    #[inline]
    pub const fn is_terminator(self) -> bool {
        matches!(self.effect(), Effect::Control)
    }

    /// How the instruction accesses linear memory, for plain and indexed loads and stores.
    #[inline]
    pub const fn access(self) -> Option<Access> {
        use Op::*;
        use ValType::{F32, F64, I32, I64};
        let (ty, bytes, signed) = match self {
            I32Load | I32LoadIndexed | I32Store | I32StoreIndexed => (I32, 4, false),
            I64Load | I64LoadIndexed | I64Store | I64StoreIndexed => (I64, 8, false),
            F32Load | F32LoadIndexed | F32Store | F32StoreIndexed => (F32, 4, false),
            F64Load | F64LoadIndexed | F64Store | F64StoreIndexed => (F64, 8, false),
            I32Load8S | I32Load8SIndexed => (I32, 1, true),
            I32Load8U | I32Load8UIndexed | I32Store8 | I32Store8Indexed => (I32, 1, false),
            I32Load16S | I32Load16SIndexed => (I32, 2, true),
            I32Load16U | I32Load16UIndexed | I32Store16 | I32Store16Indexed => (I32, 2, false),
            I64Load8S | I64Load8SIndexed => (I64, 1, true),
            I64Load8U | I64Load8UIndexed | I64Store8 | I64Store8Indexed => (I64, 1, false),
            I64Load16S | I64Load16SIndexed => (I64, 2, true),
            I64Load16U | I64Load16UIndexed | I64Store16 | I64Store16Indexed => (I64, 2, false),
            I64Load32S | I64Load32SIndexed => (I64, 4, true),
            I64Load32U | I64Load32UIndexed | I64Store32 | I64Store32Indexed => (I64, 4, false),
            _ => return None,
        };
        let store = matches!(self.effect(), Effect::Write);
        let indexed = matches!(self.imm_kind(), ImmKind::Indexed);
        Some(Access { ty, bytes, signed, store, indexed })
    }

    /// Whether the instruction is floating-point arithmetic whose NaN results have bits that the
    /// machine chooses, and which `canonical_nans` fixes. Sign operations, moves and `reinterpret`
    /// keep bits and are not among them.
    pub const fn makes_nan(self) -> bool {
        use Op::*;
        matches!(
            self,
            F32Ceil
                | F32Floor
                | F32Trunc
                | F32Nearest
                | F32Sqrt
                | F32Add
                | F32Sub
                | F32Mul
                | F32Div
                | F32Min
                | F32Max
                | F32DemoteF64
                | F64Ceil
                | F64Floor
                | F64Trunc
                | F64Nearest
                | F64Sqrt
                | F64Add
                | F64Sub
                | F64Mul
                | F64Div
                | F64Min
                | F64Max
                | F64PromoteF32
        )
    }
}

/// How a load or store accesses linear memory.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The type of the value on the operand stack.
    pub ty: ValType,
    /// The number of bytes in memory.
    pub bytes: u32,
    /// Whether a narrow load extends the sign.
    pub signed: bool,
    /// Whether it is a store.
    pub store: bool,
    /// Whether the address is a base and a scaled index.
    pub indexed: bool,
}

impl Access {
    /// Whether all bytes of the type are accessed, not a narrower integer.
    pub const fn is_full(self) -> bool {
        self.bytes == self.ty.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_mnemonics_are_unique_and_round_trip() {
        for (i, &op) in Op::ALL.iter().enumerate() {
            assert_eq!(Op::from_byte(op.byte()), Some(op));
            assert_eq!(Op::from_mnemonic(op.mnemonic()), Some(op));
            assert_ne!(op.byte(), VECTOR_PREFIX);
            if i > 0 {
                assert!(Op::ALL[i - 1].byte() < op.byte(), "{op:?} is out of order");
            }
        }
    }

    #[test]
    fn accesses_agree_with_signatures() {
        for &op in Op::ALL {
            let is_access = matches!(op.imm_kind(), ImmKind::Mem | ImmKind::Indexed);
            assert_eq!(op.access().is_some(), is_access, "{op:?}");
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
