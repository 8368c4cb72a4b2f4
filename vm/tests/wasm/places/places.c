#include "checks.h"

int quotient(int a, int b) {
  int c = checked(b);
  return a / c;
}
