/** Versions of models in a store, and reports about their answers, for tests that look at both. */
import type { Store } from '../../../src/database/store.ts';
import { describeModel, describeParameters } from '../../../src/prediction/model/describe-model.ts';
import { checksumOf, encodeModel } from '../../../src/prediction/model/model-codec.ts';
import { saveModelVersion, takeVersionNumber } from '../../../src/prediction/registry/model-store.ts';
import { trainModel } from '../../../src/prediction/training/train-model.ts';
import { observePool, tabulate } from './observed-pool.ts';

const rows = observePool({ rows: 300, servers: [1, 2, 1.2] });
const model = trainModel('m@1', tabulate(rows));

/** Returns its number. It is not served. */
export async function saveTestVersion(store: Store, name: string, source: object = { rows: 300 }): Promise<number> {
  const version = await takeVersionNumber(store, name);
  const file = encodeModel({ ...model, id: `${name}@${version}` });
  await saveModelVersion(store, {
    name,
    version,
    parentVersion: version === 1 ? undefined : version - 1,
    createdAtMs: Date.UTC(2026, 5, version),
    checksum: checksumOf(file),
    lineage: JSON.stringify({ source, parameters: describeParameters(model), learned: describeModel(model) }),
    file,
  });
  return version;
}

/** Reports rows over HTTP, as a gateway does. */
export async function reportTestRows(url: string, targetModel: string, count: number): Promise<void> {
  const lines = rows.slice(0, count).map(({ input, ttftMs, tpotMs }, index) =>
    JSON.stringify({
      observation: {
        requestId: `${targetModel} ${index}`,
        targetModel,
        input: { ...input },
        ttftMillis: ttftMs,
        tpotMillis: tpotMs,
      },
    }),
  );
  const response = await fetch(`${url}/observation.v1.ObservationService/ReportBatch`, {
    method: 'POST',
    headers: { 'content-type': 'application/jsonl' },
    body: lines.join('\n'),
  });
  if (!response.ok) throw new Error(`The reports were refused: ${await response.text()}`);
}
