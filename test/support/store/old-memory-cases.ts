/** Measures in a separate thread what calls leave in old memory, since the test runner's hooks keep asynchronous work alive longer. */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

/** What `old-memory-worker.ts` can measure. */
export type OldMemoryCase = 'store' | 'group commit';

/** Bytes that one call of the case leaves in old memory. */
export async function measureInWorker(name: OldMemoryCase): Promise<number> {
  const worker = new Worker(new URL('./old-memory-worker.ts', import.meta.url), { workerData: name });
  const [bytes] = (await once(worker, 'message')) as [number];
  await worker.terminate();
  return bytes;
}
