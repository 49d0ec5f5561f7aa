/** Mounts a small disk for a test that fills it. */
import { execFileSync } from 'node:child_process';
import type { TestContext } from 'node:test';

/** Mounts the disk over the folder until it is disposed. Undefined, and the test is skipped, without root, which alone may mount. */
export function mountSmallDisk(t: TestContext, folder: string, megabytes: number): Disposable | undefined {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=700`, 'tmpfs', folder], { stdio: 'pipe' });
  } catch (error) {
    t.skip(`mount is not allowed here: ${(error as Error).message}`);
    return undefined;
  }
  return { [Symbol.dispose]: () => void execFileSync('umount', ['--lazy', folder]) };
}
