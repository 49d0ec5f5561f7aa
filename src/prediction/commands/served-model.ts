/** Reads the served version of a model from the store of this machine. */
import { openCliStore } from '../../command-line/open-cli-store.ts';
import { remark } from '../../command-line/output.ts';
import { isFailure } from '../../errors.ts';
import type { LatencyModel } from '../model/model.ts';
import { decodeModel } from '../model/model-codec.ts';
import { listPromotedModels, readModelFile } from '../registry/model-store.ts';

export interface ServedModel {
  /** Undefined while nothing is served under this name. */
  readonly model: LatencyModel | undefined;
  /** For a name that is not served, Predict answers with the prior or refuses the call. */
  readonly unknownModel: 'prior' | 'reject';
}

export async function readServedModel(name: string): Promise<ServedModel> {
  await using opened = await openCliStore();
  const promoted = (await listPromotedModels(opened.store)).find((model) => model.name === name);
  const model = promoted && decodeModel(await readModelFile(opened.store, name, promoted.version));
  return { model, unknownModel: opened.config.prediction.unknownModel };
}

/** Returns the served version for a report; if it cannot be read, prints the reason and returns undefined. */
export async function findServedModel(name: string | undefined): Promise<LatencyModel | undefined> {
  if (name === undefined) {
    remark('The report is without the served version: --model NAME names it');
    return undefined;
  }
  try {
    const { model } = await readServedModel(name);
    if (model === undefined) remark(`The report is without a served version: none of "${name}" is served`);
    return model;
  } catch (error) {
    if (!isFailure(error)) throw error;
    remark(`The report is without the served version: ${error.message}`);
    return undefined;
  }
}
