/** Finds out whether a file exists, and never takes one that cannot be looked for as absent. */
import { statSync } from 'node:fs';
import { describeError, Failure } from '../errors.ts';

/** False where the path leads nowhere. Throws where that cannot be known: when a folder of the path may not be read, for example. */
export function hasFile(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (cause) {
    throw new Failure('invalid', `Cannot look for "${path}": ${describeError(cause)}`, {}, { cause });
  }
}
