/** Makes one attempt: signs and sends the stored delivery, and plans its result. */
import { releaseBytes } from '../../../database/release-bytes.ts';
import type { Log } from '../../../telemetry/log.ts';
import type { World } from '../../../world.ts';
import type { EncryptionType, ProfileName } from '../../hooks/hook.ts';
import type { ReadSecrets } from '../../hooks/secret-cache.ts';
import type { PreparedRequest } from '../../profiles/profile.ts';
import { prepareRequest } from '../../profiles/profiles.ts';
import { recordAttempt } from '../queue/attempt-record.ts';
import type { AttemptResult } from '../queue/attempt-result-store.ts';
import type { ContentRow } from '../queue/delivery-queue-store.ts';
import { LANE_NUMBERS } from '../queue/delivery-state.ts';
import { MAX_SMALL_BODY_BYTES } from '../schedule/concurrency-limits.ts';
import { nextStep } from '../schedule/delivery.ts';
import type { Sender, SendRequest } from '../send/send.ts';
import { reportUnsent, type SendReport } from '../send/send-report.ts';
import type { DeliveryMetrics } from './delivery-metrics.ts';

export interface AttemptDependencies {
  readonly world: World;
  readonly log: Log;
  readonly metrics: DeliveryMetrics;
  readonly sender: Pick<Sender, 'send'>;
  readonly readSecrets: ReadSecrets;
  /** Called after each attempt. */
  readonly onAttempt?: ((hookId: number, report: SendReport) => void) | undefined;
}

export interface Attempt {
  readonly content: ContentRow;
  readonly startedAtMs: number;
  readonly requestHeaders: Readonly<Record<string, string>>;
  readonly report: SendReport;
}

export interface AttemptOptions extends Pick<SendRequest, 'ownerId' | 'onConnected'> {
  readonly deadlineMs: number;
}

/** Sends and reports; never throws. */
export type MakeAttempt = (content: ContentRow, options: AttemptOptions) => Promise<Attempt>;

export function createAttempts(dependencies: AttemptDependencies): MakeAttempt {
  const { world, metrics, sender } = dependencies;
  return async (content, options) => {
    const startedAtMs = world.nowMs();
    if (isFirstAttempt(content)) metrics.observeDelay(Math.max(0, startedAtMs - content.created_at_ms) / 1000);
    const prepared = prepare(content, startedAtMs, dependencies);
    const report =
      prepared === undefined
        ? reportUnsent('cannot be signed')
        : await sender.send({
            deliveryId: content.id,
            url: content.url ?? '',
            ...prepared,
            ...options,
            onBodySent: () => releaseLarge(content.body),
          });
    metrics.countAttempt(report.outcome.kind, report.timingsMs.total / 1000);
    dependencies.onAttempt?.(content.hook_id, report);
    return { content, startedAtMs, requestHeaders: prepared?.headers ?? {}, report };
  };
}

/** Whether this is a first attempt, whose delay is measured. A redelivery, a replay or a test is due only when it was requested. */
function isFirstAttempt({ attempts, due_at_ms, created_at_ms }: ContentRow): boolean {
  return attempts === 0 && due_at_ms === created_at_ms;
}

function releaseLarge(body: Uint8Array): void {
  if (body.byteLength > MAX_SMALL_BODY_BYTES) releaseBytes(body);
}

function prepare(
  content: ContentRow,
  startedAtMs: number,
  dependencies: AttemptDependencies,
): PreparedRequest | undefined {
  try {
    return prepareRequest(content.profile as ProfileName, {
      hookId: content.hook_id,
      encryptionType: content.encryption_type as EncryptionType,
      secrets: dependencies.readSecrets(content.hook_id, content, startedAtMs),
      eventKind: content.event_kind,
      deliveryUuid: content.uuid,
      body: content.body,
      timestampMs: startedAtMs,
    });
  } catch (error) {
    dependencies.log.error({ err: error, hookId: content.hook_id }, 'Cannot build the request of a delivery');
    return undefined;
  }
}

/** The id of an attempt in the log, and the shard and epoch that fence its result. */
export interface AttemptPlace extends Pick<AttemptResult, 'shard' | 'epoch'> {
  /** The id of its row in the log, from `store.makeIds()`. */
  readonly attemptId: number;
}

/** The result to store, with the next state: succeeded, dead, blocked, or pending in the lane of retries until the next attempt. */
export function planAttemptResult(
  attempt: Attempt,
  { attemptId, shard, epoch }: AttemptPlace,
  world: World,
): AttemptResult {
  const { content, startedAtMs, requestHeaders, report } = attempt;
  const nowMs = world.nowMs();
  const number = content.attempts - content.schedule_from + 1;
  const next = nextStep(report.outcome, { attempt: number, nowMs, random: world.random() });
  return {
    deliveryId: content.id,
    hookId: content.hook_id,
    foundDueAtMs: content.due_at_ms,
    attemptsBefore: content.attempts,
    shard,
    epoch,
    generation: content.generation,
    // The event of a test never happened, so a failed test is not retried, not even by a worker that takes it over.
    nextState: content.is_test === 1 && next.state === 'pending' ? 'dead' : next.state,
    nextLane: LANE_NUMBERS.retry,
    dueAtMs: next.dueAtMs ?? nowMs,
    attempt: recordAttempt({ id: attemptId, startedAtMs, requestHeaders, report }),
  };
}
