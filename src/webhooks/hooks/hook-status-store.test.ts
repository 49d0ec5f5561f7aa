import assert from 'node:assert/strict';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { fillTestLog } from '../../../test/support/webhooks/deliveries-store.ts';
import { WINDOW_ROWS } from '../delivery/log/log-windows-store.ts';
import { CHART_LIMIT, readLastDay } from './hook-status-store.ts';

const HOUR_MS = 3_600_000;

forEachEngine('the last day of fifty busy webhooks leaves the event loop to others', async (store) => {
  await fillTestLog(store, { hookId: 1, rows: CHART_LIMIT + 10 });
  let turns = 0;
  let isOver = false;
  const countTurn = () => {
    turns += 1;
    if (!isOver) setImmediate(countTurn);
  };
  setImmediate(countTurn);
  const days = await Promise.all(Array.from({ length: 50 }, () => readLastDay(store, 1, HOUR_MS)));
  isOver = true;
  for (const hours of days) assert.equal(hours.at(-1)?.succeeded, CHART_LIMIT, 'of the newest deliveries');
  assert.ok(turns >= 50 * (CHART_LIMIT / WINDOW_ROWS), `${turns} turns`);
});
