import { area, type Shape } from './shapes';
import words from './words.json';
import * as text from './text';

enum Colour { Red = 'red', Green = 'green' }

const shapes: Shape[] = [{ kind: 'circle', radius: 2 }, { kind: 'box', width: 3, height: 4 }];
class Counter<T> {
  #seen = new Map<T, number>();
  add(item: T): this { this.#seen.set(item, (this.#seen.get(item) ?? 0) + 1); return this; }
  static readonly none = 0;
}
const view = <ul class={Colour.Green}>{shapes.map((shape) => <li>{area(shape)}</li>)}</ul>;
console.log(view, new Counter<string>().add(words.first), text.upper(words?.second ?? ''));
if (process.env.DEBUG) console.log(text.unused());
