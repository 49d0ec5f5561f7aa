/** Sends a test event to one webhook, and limits how many tests a person makes (429), in an hour and at once. */
import { z } from '@hono/zod-openapi';
import { Failure } from '../../errors.ts';
import type { Actor } from '../../operations/operation.ts';
import type { Event } from '../events/event.ts';
import { createSampleEvent } from '../events/sample-event.ts';
import { listTestEvents, TEST_EVENTS, type TestEvent } from '../events/test-event.ts';
import type { StoredHook } from '../hooks/hook-store.ts';
import { takeHookTest } from '../hooks/hook-test-store.ts';
import { isFullNameOf, type Repository } from '../repositories/repository.ts';
import type { Management, SendingDependencies } from './management.ts';
import { createSampleNotice } from './notice-events.ts';
import { publishTest } from './publish-event.ts';

const MAX_TESTS_AN_HOUR = 60;
const TEST_DEADLINE_MS = 10_000;
const HOUR_MS = 3_600_000;

export const testParameters = z
  .object({
    event: z.enum(TEST_EVENTS).optional().openapi({
      description:
        'What is sent: a kind of event that the webhook is subscribed to, or `notice`, a notice of the service, at a webhook of NOTICE_REPOSITORY that is subscribed to issues. Absent: the first kind that it is subscribed to.',
    }),
  })
  .openapi('HookTest');

export interface HookTest {
  readonly caller: Pick<Actor, 'userId' | 'login'>;
  readonly repository: Repository;
  readonly stored: StoredHook;
  /** Undefined for the first kind of event that the webhook is subscribed to. */
  readonly event?: TestEvent | undefined;
}

/**
 * Sends an ordinary event, recorded like any other delivery: GitCode has no ping. Returns the delivery's id. A command on the store has
 * no hourly limit.
 */
export async function testHook(dependencies: SendingDependencies, test: HookTest): Promise<number> {
  const kind = chooseEvent(dependencies, test);
  const end = takePlace(dependencies, test.caller);
  try {
    return await sendTest(dependencies, test, kind);
  } finally {
    end();
  }
}

async function sendTest(dependencies: SendingDependencies, test: HookTest, kind: TestEvent): Promise<number> {
  const { caller, repository, stored } = test;
  if (caller.userId !== undefined) await takeTest(dependencies, caller.userId);
  await dependencies.guard.checkUrl(stored.hook.url);
  const event = createTestEvent(kind, test, dependencies.world.nowMs());
  const incoming = { repository, event, source: 'test', idempotencyKey: undefined };
  const deliveryId = await publishTest(dependencies, incoming, stored);
  await dependencies.manual.test(deliveryId, dependencies.world.nowMs() + TEST_DEADLINE_MS);
  return deliveryId;
}

/** The test events that can be sent to this webhook; the first is the default. */
export function listTestEventsOf(
  { noticeRepository }: Pick<Management, 'noticeRepository'>,
  { repository, stored: { hook } }: Pick<HookTest, 'repository' | 'stored'>,
) {
  return listTestEvents({ events: hook.events, hasNotices: isFullNameOf(repository, noticeRepository) });
}

function chooseEvent(dependencies: Management, test: HookTest): TestEvent {
  const allowed = listTestEventsOf(dependencies, test);
  const { event = allowed[0] } = test;
  if (allowed.includes(event)) return event;
  throw new Failure(
    'invalid',
    `Cannot test the webhook: event must be one that it is subscribed to (${allowed.join(', ')}), got "${event}"`,
    { field: 'event' },
  );
}

function createTestEvent(kind: TestEvent, { caller, repository }: HookTest, nowMs: number): Event {
  if (kind === 'notice') return createSampleNotice(nowMs);
  const login = caller.login ?? repository.ownerLogin;
  return createSampleEvent(kind, { username: login, name: login }, repository.defaultBranch, nowMs);
}

function takePlace({ testPlaces }: Management, { userId = '' }: HookTest['caller']): () => void {
  const end = testPlaces.take(userId);
  if (end !== undefined) return end;
  throw new Failure('too_many', 'Cannot test the webhook: other tests are under way; try again when they have ended', {
    retryAfterSeconds: TEST_DEADLINE_MS / 1000,
  });
}

async function takeTest(dependencies: Management, userId: string): Promise<void> {
  const nowMs = dependencies.world.nowMs();
  const hour = Math.floor(nowMs / HOUR_MS);
  if (await takeHookTest(dependencies.store, { userId, hour, maximum: MAX_TESTS_AN_HOUR })) return;
  throw new Failure('too_many', `Cannot test the webhook: at most ${MAX_TESTS_AN_HOUR} tests an hour are allowed`, {
    retryAfterSeconds: Math.ceil(((hour + 1) * HOUR_MS - nowMs) / 1000),
  });
}
