import { a, b } from './module';
interface Point {
  x: number;
  y?: string;
}
export async function* f<T extends Point>(
  p: T,
  ...rest: number[]
): AsyncGenerator<number> {
  for (const n of rest) {
    if (n > 1) yield n * 2;
    else yield await g(p?.y ?? `${n}`);
  }
}
const table = {
  one: 1,
  'two': 2,
  [a]: (x: number) => x ** 2,
  get b() {
    return b;
  },
};
switch (a) {
  case 1:
    f();
    break;
  default:
    throw new Error('no');
}
