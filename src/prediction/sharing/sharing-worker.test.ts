import assert from 'node:assert/strict';
import { openSink, reportRows } from '../../../test/support/prediction/observation-sink.ts';
import { observePool } from '../../../test/support/prediction/observed-pool.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import type { Store } from '../../database/store.ts';
import { Failure } from '../../errors.ts';
import { createLog } from '../../telemetry/log.ts';
import { realWorld } from '../../world.ts';
import { deleteLogRows, listLogRows } from './shared-log-store.ts';

/** Between rounds; without it they would leave no time for anything else. */
function rest(world: ReturnType<typeof openSink>['world']): void {
  Object.assign(world, { sleep: () => realWorld.sleep(1) });
}

/** A process learns this, shares it, and saves the state for a restart. */
async function shareOnce(store: Store, rows: ReturnType<typeof observePool>): Promise<void> {
  const { sink, sharing, world } = openSink(store);
  rest(world);
  await sharing.restore();
  sharing.start();
  await sink.report(reportRows(rows));
  await sharing.stop();
}

forEachEngine('rows that are deleted while a round stands still are restored', async (store, { openAnother }) => {
  const stoodStill = Promise.withResolvers<void>();
  const other = await openAnother();
  let isStill = false;
  const loseRows = async (): Promise<void> => {
    await shareOnce(other, observePool({ rows: 40, servers: [1, 1, 2], seed: 1 }));
    const last = (await listLogRows(store, 0)).at(-1)!.sequence;
    await deleteLogRows(store, last, Number.MAX_SAFE_INTEGER);
    // Newer than those that are gone.
    await shareOnce(other, observePool({ rows: 40, servers: [1, 1, 2], seed: 2 }));
    stoodStill.resolve();
  };
  const read: Store['read'] = async (statement, parameters) => {
    const rows = await store.read(statement, parameters);
    if (!isStill || statement.name !== 'shared-log-ends') return rows;
    isStill = false;
    await loseRows();
    return rows;
  };
  const lines: string[] = [];
  const log = createLog('warn', { write: (line) => lines.push(line) });
  const { sharing, predictor, world } = openSink({ ...store, read }, undefined, undefined, log);
  rest(world);
  await sharing.restore();
  isStill = true;
  sharing.start();
  await stoodStill.promise;
  await sharing.stop();
  assert.deepEqual(
    lines.map((line) => (JSON.parse(line) as { readonly msg: string }).msg),
    ['Restoring the saved live state: rows of the shared log are missing'],
  );
  const restarted = openSink(store);
  await restarted.sharing.restore();
  const save = (each: typeof predictor) => {
    const { servers, ...rest } = each.live(each.liveNameOf('m')).save();
    return { ...rest, servers: [...servers] };
  };
  assert.equal(save(predictor).servers.length, 3);
  assert.deepEqual(save(predictor), save(restarted.predictor));
});

forEachEngine('a row whose append breaks is one warning, and is appended later', async (store) => {
  const stored = Promise.withResolvers<void>();
  let failures = 0;
  const writeAll: Store['writeAll'] = async (statements, options) => {
    const isAppend = statements[0]?.statement.name === 'shared-clock-advance';
    if (isAppend && failures < 3) {
      failures += 1;
      throw new Failure('unavailable', 'The outcome of the write is unknown', { isUnknown: true });
    }
    const rows = await store.writeAll(statements, options);
    if (isAppend) stored.resolve();
    return rows;
  };
  const lines: string[] = [];
  const log = createLog('warn', { write: (line) => lines.push(line) });
  const { sink, sharing, world } = openSink({ ...store, writeAll }, undefined, undefined, log);
  rest(world);
  await sink.report(reportRows(observePool({ rows: 3 })));
  sharing.start();
  await stored.promise;
  await sharing.stop();
  assert.equal((await listLogRows(store, 0)).length, 1);
  const logged = lines.map((line) => JSON.parse(line) as Record<string, string>);
  assert.deepEqual(
    logged.map(({ level, reason, msg }) => ({ level, reason, msg })),
    [
      {
        level: 'warn',
        reason: 'The outcome of the write is unknown',
        msg: 'Cannot share what was learned; it is kept, and the next rounds try again',
      },
    ],
  );
});
