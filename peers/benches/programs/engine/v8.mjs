// Compiles a module, and runs it once for each line of input: a kernel with a size, or a WASI program. Each line of
// output has the CPU time that it took, first that of compiling.

import { closeSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs';
import { createInterface } from 'node:readline';

function timed(what) {
  const before = process.cpuUsage();
  const result = what();
  const { user, system } = process.cpuUsage(before);
  return [result, user + system];
}

function answer(microseconds, exit) {
  writeSync(1, JSON.stringify({ microseconds, exit }) + '\n');
}

const bytes = readFileSync(process.argv[2]);
const [module, taken] = timed(() => new WebAssembly.Module(bytes));
answer(taken, 0);

function kernel({ size, output }) {
  let memory;
  const printed = [];
  const print = (value) => printed.push(Buffer.from(String(value)));
  const env = {
    print_i32: print,
    print_i64: print,
    print_f64: print,
    print_char: (code) => print(String.fromCodePoint(code)),
    print_str: (start, length) => {
      printed.push(Buffer.from(memory.buffer.slice(start >>> 0, (start >>> 0) + (length >>> 0))));
    },
  };
  const [exit, taken] = timed(() => {
    const { exports } = new WebAssembly.Instance(module, { env });
    memory = exports.memory;
    return exports.main(size);
  });
  writeFileSync(output, Buffer.concat(printed));
  answer(taken, exit);
}

async function program({ args, env, preopens, input, output }) {
  const { WASI } = await import('node:wasi');
  const [stdin, stdout, stderr] = [openSync(input), openSync(output, 'w'), openSync('/dev/null', 'w')];
  const wasi = new WASI({
    version: 'preview1', args, env, preopens, stdin, stdout, stderr, returnOnExit: true,
  });
  const [exit, taken] = timed(() => {
    const instance = new WebAssembly.Instance(module, wasi.getImportObject());
    return wasi.start(instance);
  });
  for (const file of [stdin, stdout, stderr]) closeSync(file);
  answer(taken, exit);
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  if ('size' in request) kernel(request);
  else await program(request);
}
