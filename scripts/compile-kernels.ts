import { main } from 'assemblyscript/asc';

const FOLDER = 'src/prediction/gbdt/assembly';
const KERNELS = ['evaluate', 'train'];

/** Compiles each kernel from the AssemblyScript beside it; returns the WebAssembly by path. The same source gives the same bytes. */
export async function compileKernels(): Promise<ReadonlyMap<string, Uint8Array>> {
  const compiled = new Map<string, Uint8Array>();
  for (const name of KERNELS) compiled.set(`${FOLDER}/${name}.wasm`, await compileKernel(`${FOLDER}/${name}.ts`));
  return compiled;
}

async function compileKernel(source: string): Promise<Uint8Array> {
  const files = new Map<string, Uint8Array>();
  const options = [
    '--runtime',
    'stub',
    '--importMemory',
    '--noAssert',
    '-O3',
    '--enable',
    'simd',
    '--enable',
    'relaxed-simd',
  ];
  const { error } = await main([source, '--outFile', 'kernel.wasm', ...options], {
    writeFile: (name: string, content: string | Uint8Array) => {
      if (content instanceof Uint8Array) files.set(name, content);
    },
  });
  const binary = files.get('kernel.wasm');
  if (error !== null || binary === undefined) {
    throw new Error(`Cannot compile ${source}: ${error?.message ?? 'no output'}`, { cause: error });
  }
  return binary;
}
