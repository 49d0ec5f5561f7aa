/** Compiles a library that stands before the C library (LD_PRELOAD). */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Returns the path of the library, in the folder. */
export function compileShim(name: 'power-cut' | 'failing-flush', folder: string): string {
  const path = join(folder, `${name}.so`);
  const source = fileURLToPath(new URL(`./${name}.c`, import.meta.url));
  execFileSync('cc', ['-shared', '-fPIC', '-O1', '-o', path, source, '-ldl', '-lpthread'], { stdio: 'pipe' });
  return path;
}
