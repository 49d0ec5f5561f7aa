/** Measures in a thread of its own what calls leave in old memory: the hooks of the test runner keep asynchronous work for longer. */
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
