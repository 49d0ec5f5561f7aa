/** Loads the compiled WebAssembly kernels, and plans their memory. */
import { readFileSync } from 'node:fs';

/** Compiled WebAssembly modules, made by `npm run generate:wasm` from the AssemblyScript in `assembly/`. */
export type KernelName = 'evaluate' | 'train';

const modules = new Map<KernelName, WebAssembly.Module | undefined>();

/** Undefined where the machine lacks WebAssembly with (relaxed) SIMD; the same code in plain TypeScript is used then. */
export function findKernelModule(name: KernelName): WebAssembly.Module | undefined {
  if (!modules.has(name)) modules.set(name, compileKernel(name));
  return modules.get(name);
}

function compileKernel(name: KernelName): WebAssembly.Module | undefined {
  const bytes = readFileSync(new URL(`./assembly/${name}.wasm`, import.meta.url));
  return typeof WebAssembly === 'object' && WebAssembly.validate(bytes) ? new WebAssembly.Module(bytes) : undefined;
}

const PAGE_BYTES = 65_536;
/** Addresses up to this stay positive as signed 32-bit numbers. */
const MOST_BYTES = 2 ** 31 - PAGE_BYTES;

/** Hands out a kernel's memory from the front, in steps of 16 bytes; nothing is ever freed. */
export interface MemoryPlan {
  readonly reserve: (bytes: number) => number;
  /** Whether all that was reserved fits into one memory. */
  fits(): boolean;
  create(): WebAssembly.Memory;
}

export function planMemory(): MemoryPlan {
  // The first bytes stay free: AssemblyScript takes address 0 for null.
  let end = 1024;
  return {
    reserve(bytes) {
      const address = end;
      end += Math.ceil(bytes / 16) * 16;
      return address;
    },
    fits: () => end <= MOST_BYTES,
    create() {
      const pages = Math.ceil((end + 16) / PAGE_BYTES);
      return new WebAssembly.Memory({ initial: pages, maximum: pages });
    },
  };
}
