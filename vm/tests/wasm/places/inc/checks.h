static inline __attribute__((always_inline)) int checked(int divisor) {
  if (divisor == 7)
    __builtin_trap();
  return divisor;
}
