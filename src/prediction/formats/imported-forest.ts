/** Defines an imported model of another library: its trees and the names of its features. */

import { Failure } from '../../errors.ts';
import { createGeneralForest, type GeneralForest, type GeneralForestInput } from '../gbdt/general/general-tree.ts';

/** `featureNames` are in the order of the trained model; empty when the file has no names. */
export interface ImportedForest {
  readonly forest: GeneralForest;
  readonly featureNames: readonly string[];
}

/** Throws `invalid`, with the name of the library, for trees that are not well formed. */
export function createImportedForest(
  library: string,
  input: GeneralForestInput,
  featureNames: readonly string[],
): ImportedForest {
  try {
    return { forest: createGeneralForest(input), featureNames };
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause;
    throw new Failure('invalid', `Cannot import the ${library} model: ${cause.message}`, {}, { cause });
  }
}
