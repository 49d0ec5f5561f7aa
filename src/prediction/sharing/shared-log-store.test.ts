import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '../../../test/support/basics/wait-until.ts';
import { startCutProxy } from '../../../test/support/network/cut-proxy.ts';
import { findReasonToSkip, forEachEngine } from '../../../test/support/store/engines.ts';
import { withLockedRows } from '../../../test/support/store/locked-rows.ts';
import { SWEEP_BATCH } from '../../database/sweep.ts';
import { appendToLog, deleteLogRows, listLogRows, readLogEnds } from './shared-log-store.ts';

const OLD_MS = 1000;

forEachEngine('old rows of the log are deleted a batch at a time, the oldest first', async (store) => {
  const content = new Uint8Array(1);
  const last = SWEEP_BATCH + 10;
  const rows = Array.from({ length: last }, (_, number) => ({ process: 'p', number, nowMs: OLD_MS, content }));
  for (const row of rows) await appendToLog(store, row);
  await deleteLogRows(store, last - 2, OLD_MS);
  assert.deepEqual(await readLogEnds(store), { first: 1, last }, 'none is old enough');
  await deleteLogRows(store, last - 2, OLD_MS + 1);
  assert.deepEqual(await readLogEnds(store), { first: SWEEP_BATCH + 1, last });
  await deleteLogRows(store, last - 2, OLD_MS + 1);
  assert.deepEqual(await readLogEnds(store), { first: last - 1, last });
});

forEachEngine('a row that is appended again after a lost answer takes no second number', async (store) => {
  const row = { process: 'p', number: 1, nowMs: OLD_MS, content: new Uint8Array(1) };
  for (let attempt = 0; attempt < 2; attempt++) await appendToLog(store, row);
  assert.deepEqual(await readLogEnds(store), { first: 1, last: 1 });
  await deleteLogRows(store, 1, OLD_MS + 1);
  assert.deepEqual(await readLogEnds(store), { first: 2, last: 1 }, 'who has the first row has all');
});

test('a row that is appended again while its first transaction is still open takes no second number', {
  skip: findReasonToSkip('postgres'),
}, async () => {
  await withLockedRows(async ({ store, change }) => {
    const row = { process: 'p', number: 1, nowMs: OLD_MS, content: new Uint8Array(1) };
    const appendTwice = () => Promise.all([appendToLog(store, row), appendToLog(store, row)]);
    await change('UPDATE shared_clock SET sequence = sequence', appendTwice, 2);
    assert.deepEqual(await readLogEnds(store), { first: 1, last: 1 });
  });
});

forEachEngine(
  'a process that stands still while it appends holds up no other',
  async (store, { place, openAnother }) => {
    const { databaseUrl = '' } = place;
    await using proxy = await startCutProxy(databaseUrl);
    const behindProxy = await openAnother({ databaseUrl: proxy.databaseUrl });
    proxy.stallAfter('shared-log-append');
    const row = { number: 1, nowMs: OLD_MS, content: new Uint8Array(1) };
    const append = appendToLog(behindProxy, { process: 'still', ...row }).catch(() => {});
    await waitUntil(async () => (await listLogRows(store, 0)).length === 1);
    await appendToLog(store, { process: 'other', ...row });
    assert.deepEqual(
      (await listLogRows(store, 0)).map(({ process }) => process),
      ['still', 'other'],
    );
    proxy.cut();
    await append;
  },
  { only: 'postgres' },
);
