import assert from 'node:assert/strict';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { startManagement } from '../../../test/support/webhooks/webhook-management.ts';
import type { Store } from '../../database/store.ts';
import { Failure, isFailure } from '../../errors.ts';
import { createLog } from '../../telemetry/log.ts';
import { realWorld } from '../../world.ts';
import { createSampleEvent } from '../events/sample-event.ts';
import { createIntake } from './intake.ts';

const OWNERS = 100;
const MIB = 1024 * 1024;
const actor = { username: 'grace', name: 'Grace' };
const small = createSampleEvent('push', actor, 'main', Date.UTC(2026, 0, 1));
const commit = {
  id: '1'.padStart(40, '0'),
  message: 'm'.repeat(900_000),
  timestamp: '2026-01-01T00:00:00Z',
  author: { name: 'Grace', email: 'grace@example.com' },
};
const large = { ...small, commits: [commit] } as typeof small;

forEachEngine('events of many owners that wait for a slow commit take 32 MiB and one event at most', async (store) => {
  await using server = await startManagement(store);
  await server.call('POST', '/user/repos', { json: { name: 'doors' } });
  const repository = await server.management.access.find('grace', 'doors');
  const committing = Promise.withResolvers<void>();
  const writeAll: Store['writeAll'] = async () => {
    await committing.promise;
    throw new Failure('unavailable', 'The database is away');
  };
  const intake = createIntake({
    store: { ...store, writeAll },
    world: realWorld,
    log: createLog('silent'),
    onCommitted: () => {},
  });
  const refused: unknown[] = [];
  const accept = async (owner: number, event: typeof small): Promise<void> => {
    const incoming = { repository: { ...repository, ownerId: `owner-${owner}` }, event, source: 'api' };
    await intake.accept({ ...incoming, idempotencyKey: undefined }).catch((error: unknown) => refused.push(error));
  };
  const accepting = Array.from({ length: OWNERS }, (_, owner) => accept(owner, large));
  await nextTurn();
  const waitingBytes = (OWNERS - refused.length) * 900_000;
  assert.ok(waitingBytes > 31 * MIB && waitingBytes < 33 * MIB, `${waitingBytes} bytes wait`);
  for (const error of refused)
    assert.deepEqual(isFailure(error) && [error.code, error.details.retryAfterSeconds], ['unavailable', 1]);
  const before = refused.length;
  accepting.push(accept(OWNERS, small));
  await nextTurn();
  assert.equal(refused.length, before, 'a small one of another owner');
  committing.resolve();
  await Promise.all(accepting);
});
