/** Declares a model of another library after its import. */

import { Failure } from '../../errors.ts';
import { createGeneralForest, type GeneralForest, type GeneralForestInput } from '../gbdt/general/general-tree.ts';

/** A model that another library trained, and the features it wants, in its order; empty when the file has no names. */
export interface ImportedForest {
  readonly forest: GeneralForest;
  readonly featureNames: readonly string[];
}

/** Refuses trees that are not well formed in the words of an import. */
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
