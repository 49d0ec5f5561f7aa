import assert from 'node:assert/strict';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import type { Store } from '../../database/store.ts';
import { SWEEP_BATCH } from '../../database/sweep.ts';
import { addAlarmsStatements, forgetDriftAlarms, listDriftAlarms } from './drift-alarm-store.ts';

const DAY_MS = 24 * 3_600_000;
const NOW = Date.UTC(2026, 5, 1, 12, 30);

forEachEngine('forgetDriftAlarms() deletes alarms of a month ago a batch at a time', async (store) => {
  const alarm = { target: 'ttft', cause: 'error', count: 1 } as const;
  const old = Array.from({ length: 100 }, (_, i) => ({
    ...alarm,
    targetModel: `m-${i}`,
    lastAtMs: NOW - 31 * DAY_MS,
  }));
  const kept = { ...alarm, targetModel: 'kept', lastAtMs: NOW - 29 * DAY_MS };
  await store.writeAll(addAlarmsStatements([...old, kept]));
  const limits: number[] = [];
  const counting: Store = {
    ...store,
    write: async (of, parameters = []) => {
      limits.push(Number(parameters.at(-1)));
      return await store.write(of, parameters);
    },
  };
  assert.equal(await forgetDriftAlarms(counting, NOW), 100);
  assert.ok(limits.length > 1 && limits.every((limit) => limit <= SWEEP_BATCH), limits.join());
  assert.deepEqual(
    (await listDriftAlarms(store, 0)).map(({ targetModel }) => targetModel),
    ['kept'],
  );
});
