/** Finds out whether a file exists, and throws, instead of reporting absence, when it cannot look. */
import { statSync } from 'node:fs';
import { describeError, Failure } from '../errors.ts';

/** Returns false if the path does not exist. Throws if that cannot be determined, for example when a folder of the path is not readable. */
export function hasFile(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (cause) {
    throw new Failure('invalid', `Cannot look for "${path}": ${describeError(cause)}`, {}, { cause });
  }
}
