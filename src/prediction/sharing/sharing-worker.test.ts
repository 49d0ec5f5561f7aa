import assert from 'node:assert/strict';
import { openSink, reportRows } from '../../../test/support/prediction/observation-sink.ts';
import { observePool } from '../../../test/support/prediction/observed-pool.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import type { Store } from '../../database/store.ts';
import { Failure } from '../../errors.ts';
import { createLog } from '../../telemetry/log.ts';
import { realWorld } from '../../world.ts';
import { listLogRows } from './shared-log-store.ts';

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
  // The rest between rounds; without it they would leave no time for anything else.
  Object.assign(world, { sleep: () => realWorld.sleep(1) });
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
