import { Failure } from '../../errors.ts';
import type { Actor } from '../../operations/operation.ts';
import { createSampleEvent } from '../events/sample-event.ts';
import type { StoredHook } from '../hooks/hook-store.ts';
import { takeHookTest } from '../hooks/hook-test-store.ts';
import type { Repository } from '../repositories/repository.ts';
import type { Management, SendingDependencies } from './management.ts';
import { publishTest } from './publish-event.ts';

const MAX_TESTS_AN_HOUR = 60;
const TEST_DEADLINE_MS = 10_000;
const HOUR_MS = 3_600_000;

export interface HookTest {
  readonly caller: Pick<Actor, 'userId' | 'login'>;
  readonly repository: Repository;
  readonly stored: StoredHook;
}

/** An ordinary push, recorded like any other delivery: GitCode has no ping. Returns the delivery's id. On the store, tests are not counted. */
export async function testHook(
  dependencies: SendingDependencies,
  { caller, repository, stored }: HookTest,
): Promise<number> {
  if (caller.userId !== undefined) await takeTest(dependencies, caller.userId);
  await dependencies.guard.checkUrl(stored.hook.url);
  const login = caller.login ?? repository.ownerLogin;
  const actor = { username: login, name: login };
  const event = createSampleEvent('push', actor, repository.defaultBranch, dependencies.world.nowMs());
  const incoming = { repository, event, source: 'test', idempotencyKey: undefined };
  const deliveryId = await publishTest(dependencies, incoming, stored);
  await dependencies.manual.test(deliveryId, dependencies.world.nowMs() + TEST_DEADLINE_MS);
  return deliveryId;
}

async function takeTest(dependencies: Management, userId: string): Promise<void> {
  const nowMs = dependencies.world.nowMs();
  const hour = Math.floor(nowMs / HOUR_MS);
  if (await takeHookTest(dependencies.store, { userId, hour, maximum: MAX_TESTS_AN_HOUR })) return;
  throw new Failure('too_many', `Cannot test the webhook: at most ${MAX_TESTS_AN_HOUR} tests an hour are allowed`, {
    retryAfterSeconds: Math.ceil(((hour + 1) * HOUR_MS - nowMs) / 1000),
  });
}
