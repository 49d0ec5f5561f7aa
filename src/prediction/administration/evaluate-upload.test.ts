/** Files that callers send to be evaluated: real ones, read by the process of a service. */
import assert from 'node:assert/strict';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { auditChange } from '../../../test/support/basics/audited-changes.ts';
import { createStillWorld } from '../../../test/support/basics/still-world.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import type { Store } from '../../database/store.ts';
import { callOnStore } from '../../operations/call-on-store.ts';
import { COMMAND_LINE } from '../../operations/operation.ts';
import { createFileReader } from './file-reader.ts';
import { implementModels } from './implement-models.ts';
import { evaluateObservations } from './model-operations.ts';

function evaluateUpload(store: Store, file: Uint8Array, input: Readonly<Record<string, string>> = {}) {
  const implementations = implementModels({
    store,
    world: createStillWorld(),
    auditChange,
    reader: createFileReader(),
  });
  return callOnStore(implementations, evaluateObservations, { input, file, actor: COMMAND_LINE });
}

/** A megabyte: the values repeat. */
function createParquet(rows: number): Uint8Array {
  const data = Int32Array.from({ length: rows }, (_, row) => row % 64);
  const columnData = [{ name: 'input_token_length', data, type: 'INT32' as const }];
  return new Uint8Array(parquetWriteBuffer({ columnData, codec: 'SNAPPY', rowGroupSize: rows }));
}

forEachEngine('a Parquet file of 1,000,001 rows is refused by the name of its limit', async (store) => {
  await assert.rejects(evaluateUpload(store, createParquet(1_000_001)), {
    code: 'invalid',
    message: /it must have at most 1000000 rows, got 1000001/,
  });
});

/** A report of GuideLLM with two benchmarks. */
function createReport(): Uint8Array {
  const successful = (firstS: number) =>
    Array.from({ length: 40 }, (_, i) => ({
      prompt_tokens: 100 + i,
      output_tokens: 10,
      info: {
        timings: {
          request_start: firstS + i,
          first_token_iteration: firstS + i + 0.1 + i / 1000,
          last_token_iteration: firstS + i + 0.5 + i / 1000,
        },
      },
    }));
  return Buffer.from(
    JSON.stringify({ benchmarks: [1000, 2000].map((s) => ({ requests: { successful: successful(s) } })) }),
  );
}

const BENCHMARK = { format: 'guidellm', server: 's', kvCapacityTokens: '10000', protocol: 'leave-run-out' };

forEachEngine("a run of a benchmark's file is held out by the name of the file", async (store) => {
  for (const given of [{ source: 'out/report.json', holdOut: 'out/report.json#2' }, { holdOut: 'file#1' }]) {
    const { ttft } = await evaluateUpload(store, createReport(), { ...BENCHMARK, ...given });
    assert.equal(ttft.rows, 40);
  }
});

forEachEngine('a message about a file names it as its caller does', async (store) => {
  const source = 'rows.parquet';
  const format = 'parquet';
  await assert.rejects(evaluateUpload(store, Buffer.from('PAR1'), { source, format }), {
    message: /^Cannot read "rows.parquet" as Parquet: it is too short/,
  });
});

forEachEngine(
  'a file with a reason and a field of its own in each row has the 100 most frequent of each, and the rest together',
  async (store) => {
    const others = Array.from({ length: 20_000 }, (_, i) => ({ target_model: i < 30 ? 'n' : `m${i}`, [`f${i}`]: 1 }));
    const rows = Array.from({ length: 60 }, () => ({ target_model: 'm', f0: 1 }));
    const lines = [...others, ...rows].map((row, i) =>
      JSON.stringify({ ...row, at: 1.7e12 + i, input_token_length: 9 + i, ttft_millis: 5 + (i % 3) }),
    );
    const { ttft, left_out, ignored } = await evaluateUpload(store, Buffer.from(lines.join('\n')), {
      model: 'm',
      format: 'jsonl',
      protocol: 'time',
    });
    assert.ok(ttft.rows > 0);
    assert.equal(left_out!.length, 101);
    assert.deepEqual(left_out![0], { rows: 30, reason: 'target_model is "n"', first_at: '1' });
    assert.deepEqual(left_out![100], { rows: 20_000 - 30 - 99, reason: 'other reasons', first_at: `${30 + 99 + 1}` });
    assert.equal(ignored!.length, 101);
    assert.deepEqual(ignored![0], { name: 'f0', rows: 61 });
    assert.deepEqual(ignored![100], { name: 'other fields', rows: 20_000 - 100 });
  },
);
