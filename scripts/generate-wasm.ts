/** Compiles the WebAssembly kernels, which are committed so that running the service needs no compiler. */
import { writeFileSync } from 'node:fs';
import { compileKernels } from './compile-kernels.ts';

for (const [path, bytes] of await compileKernels()) {
  writeFileSync(path, bytes);
  process.stdout.write(`${path} ${bytes.length} bytes\n`);
}
