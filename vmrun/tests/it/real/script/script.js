// The value of the last expression is what counts.
class Stack {
  #items = [];
  push(...items) { this.#items.push(...items); return this; }
  *[Symbol.iterator]() { for (let i = this.#items.length; i-- > 0; ) yield this.#items[i]; }
}

function primes(limit) {
  const composite = new Uint8Array(limit + 1);
  const found = [];
  for (let i = 2; i <= limit; i++) {
    if (composite[i]) continue;
    found.push(i);
    for (let j = i * i; j <= limit; j += i) composite[j] = 1;
  }
  return found;
}

const factorial = (n) => (n < 2n ? 1n : n * factorial(n - 1n));
const words = 'the quick brown fox jumps over the lazy dog; the fox naps'.match(/(?<![a-z])[a-z]+/g);
const counts = new Map();
for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
const error = (() => { try { null.x; } catch ({ name }) { return name; } finally { words.reverse(); } })();
const { groups: { year, rest: [first] } } = /(?<year>\d{4})-(?<rest>.*)/u.exec('on 2024-02-29');

JSON.stringify({
  primes: [primes(20000).length, primes(20000).at(-1)],
  factorial: String(factorial(30n)),
  counts: [...counts].filter(([, n]) => n > 1).sort(([a], [b]) => (a < b ? -1 : 1)),
  numbers: [0.1 + 0.2, 1e21, -0, 5e-324, 1 / 3, 2 ** 53, Math.hypot(3, 4)],
  text: [(255).toString(2), (1234.5678).toFixed(2), (0.000001234).toExponential(3), (1e21 + 1).toPrecision(6)],
  unicode: ['stra\u00dfe'.toUpperCase(), '\u{1f600}'.length, [...'\u{1f600}!'].length, 'a\u0301'.normalize('NFC').length],
  date: new Date(Date.UTC(2024, 1, 29, 12)).toISOString(),
  stack: [...new Stack().push(1, 2, 3)],
  words: words.slice(0, 3).join(' '),
  found: [error, year, first, `${[3, 20, 100].sort()}`],
  flat: Object.entries({ a: [1, [2, [3]]] }).flat(Infinity),
}, null, 1);
