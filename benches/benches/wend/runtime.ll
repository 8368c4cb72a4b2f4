; What the LLVM form of a wend program calls. The constants in capitals are replaced.

@memory = internal global [MEMORY_BYTES x i8] zeroinitializer, align 16
@texts = internal constant [TEXTS_BYTES x i8] c"TEXTS"
@sp = internal global i32 FRAMES
@records = internal global i32 RECORDS

declare void @host_print_i32(i32)
declare void @host_print_char(i32)
declare void @host_print_str(ptr, i32)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.trap() noreturn

define internal i32 @slotvm.i32.load(i32 %a, i64 %o) alwaysinline {
  %x = zext i32 %a to i64
  %y = add i64 %x, %o
  %p = getelementptr i8, ptr @memory, i64 %y
  %v = load i32, ptr %p, align 1
  ret i32 %v
}

define internal void @slotvm.i32.store(i32 %a, i32 %v, i64 %o) alwaysinline {
  %x = zext i32 %a to i64
  %y = add i64 %x, %o
  %p = getelementptr i8, ptr @memory, i64 %y
  store i32 %v, ptr %p, align 1
  ret void
}

define internal i32 @slotvm.frame.push(i64 %n) alwaysinline {
  %a = load i32, ptr @sp
  %m = trunc i64 %n to i32
  %e = add i32 %a, %m
  %over = icmp ugt i32 %e, RECORDS
  br i1 %over, label %bad, label %good
bad:
  call void @llvm.trap()
  unreachable
good:
  store i32 %e, ptr @sp
  %x = zext i32 %a to i64
  %p = getelementptr i8, ptr @memory, i64 %x
  call void @llvm.memset.p0.i64(ptr %p, i8 0, i64 %n, i1 false)
  ret i32 %a
}

define internal void @slotvm.frame.pop(i64 %n) alwaysinline {
  %a = load i32, ptr @sp
  %m = trunc i64 %n to i32
  %e = sub i32 %a, %m
  store i32 %e, ptr @sp
  ret void
}

define internal i32 @slotvm.global.get.g0() alwaysinline {
  %v = load i32, ptr @records
  ret i32 %v
}

define internal void @slotvm.global.set.g0(i32 %v) alwaysinline {
  store i32 %v, ptr @records
  ret void
}

define internal i32 @slotvm.i32.div_s(i32 %a, i32 %b) alwaysinline {
  %zero = icmp eq i32 %b, 0
  %least = icmp eq i32 %a, -2147483648
  %minus = icmp eq i32 %b, -1
  %over = and i1 %least, %minus
  %traps = or i1 %zero, %over
  br i1 %traps, label %bad, label %good
bad:
  call void @llvm.trap()
  unreachable
good:
  %q = sdiv i32 %a, %b
  ret i32 %q
}

define internal i32 @slotvm.i32.rem_s(i32 %a, i32 %b) alwaysinline {
  %zero = icmp eq i32 %b, 0
  br i1 %zero, label %bad, label %good
bad:
  call void @llvm.trap()
  unreachable
good:
  %minus = icmp eq i32 %b, -1
  %divisor = select i1 %minus, i32 1, i32 %b
  %r = srem i32 %a, %divisor
  ret i32 %r
}

define internal tailcc void @f0.print_i32(i32 %v) alwaysinline {
  call void @host_print_i32(i32 %v)
  ret void
}

define internal tailcc void @f1.print_str(i32 %a, i32 %n) alwaysinline {
  %x = zext i32 %a to i64
  %p = getelementptr i8, ptr @memory, i64 %x
  call void @host_print_str(ptr %p, i32 %n)
  ret void
}

define internal tailcc void @f2.print_char(i32 %c) alwaysinline {
  call void @host_print_char(i32 %c)
  ret void
}

define void @wend_reset() {
  %p = getelementptr i8, ptr @memory, i64 TEXTS_START
  call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr @texts, i64 TEXTS_BYTES, i1 false)
  store i32 FRAMES, ptr @sp
  store i32 RECORDS, ptr @records
  ret void
}

define void @wend_main() {
  call tailcc void @"f3.main()"()
  ret void
}
