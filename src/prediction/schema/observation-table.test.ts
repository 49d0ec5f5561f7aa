import assert from 'node:assert/strict';
import { test } from 'node:test';
import { observePool } from '../../../test/support/prediction/observed-pool.ts';
import { appendObservation, createObservationTable } from './observation-table.ts';

test('a table tells apart more than 65,536 pod types, models and runs', () => {
  const [row] = observePool({ rows: 1 });
  const table = createObservationTable();
  const last = 65_536;
  for (let i = 0; i <= last; i++)
    appendObservation(table, {
      ...row!,
      targetModel: `m${i}`,
      run: `run ${i}`,
      input: { ...row!.input, podType: `pod ${i}` },
    });
  assert.equal(table.podTypes[table.podType[last]!], `pod ${last}`);
  assert.equal(table.models[table.model[last]!], `m${last}`);
  assert.equal(table.runs[table.run[last]!], `run ${last}`);
});
