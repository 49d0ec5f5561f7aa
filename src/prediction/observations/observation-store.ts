/**
 * Joins the events of a request in whatever order they come; an event that is reported twice changes nothing. Exceptions are a
 * whole observation without a request id, which counts each time, and an event whose request is forgotten (`request-sweeper.ts`).
 * The join and the samples that result from it commit together, so an event that was acknowledged is never lost.
 */
import { conditionalProcedure, type Procedure, type Store, statement, type Transaction } from '../../database/store.ts';
import { repeatBatches, SWEEP_WITHOUT_PAUSES, type SweepPace } from '../../database/sweep.ts';
import type { DispatchedEvent, EventRefusal, ObservationEvent, ObservedInput } from '../schema/observation-event.ts';
import { createInputDraft } from './event-draft.ts';
import { insertSampleStatement, type Sample } from './sample-store.ts';

interface Pending {
  readonly target_model: string | null;
  readonly input: string | null;
  readonly at_ms: number;
  readonly ttft_ms: number | null;
  readonly tpot_ms: number | null;
  readonly output_tokens: number | null;
  readonly has_finished: number;
}

// Each of these changes a request's row only when the event is new to it. If no row is returned, the event is a repetition.
const addDispatchSql = statement<Pending>(
  'pending-add-dispatch',
  `INSERT INTO pending_requests (request_id, target_model, input, at_ms, has_finished, updated_at_ms)
   VALUES ($1, $2, $3, $4, 0, $5)
   ON CONFLICT (request_id) DO UPDATE SET target_model = excluded.target_model, input = excluded.input,
     at_ms = excluded.at_ms, updated_at_ms = excluded.updated_at_ms
   WHERE pending_requests.input IS NULL
   RETURNING target_model, input, at_ms, ttft_ms, tpot_ms, output_tokens, has_finished`,
);
const addFirstTokenSql = statement<Pending>(
  'pending-add-first-token',
  `INSERT INTO pending_requests (request_id, at_ms, ttft_ms, has_finished, updated_at_ms) VALUES ($1, $2, $3, 0, $4)
   ON CONFLICT (request_id) DO UPDATE SET ttft_ms = excluded.ttft_ms, updated_at_ms = excluded.updated_at_ms
   WHERE pending_requests.ttft_ms IS NULL
   RETURNING target_model, input, at_ms, ttft_ms, tpot_ms, output_tokens, has_finished`,
);
const addFinishSql = statement<Pending>(
  'pending-add-finish',
  `INSERT INTO pending_requests (request_id, at_ms, tpot_ms, output_tokens, has_finished, updated_at_ms)
   VALUES ($1, $2, $3, $4, 1, $5)
   ON CONFLICT (request_id) DO UPDATE SET tpot_ms = excluded.tpot_ms, output_tokens = excluded.output_tokens,
     has_finished = 1, updated_at_ms = excluded.updated_at_ms
   WHERE pending_requests.has_finished = 0
   RETURNING target_model, input, at_ms, ttft_ms, tpot_ms, output_tokens, has_finished`,
);
const addWholeSql = statement<{ request_id: string }>(
  'pending-add-whole',
  `INSERT INTO pending_requests (request_id, target_model, input, at_ms, ttft_ms, tpot_ms, has_finished, updated_at_ms)
   VALUES ($1, $2, $3, $4, $5, $6, 1, $7) ON CONFLICT (request_id) DO NOTHING RETURNING request_id`,
);
// Without a first token a request may still have ended. One that was never dispatched or never ended counts as incomplete.
const sweepOldSql = statement<{ request_id: string; has_ended: number }>(
  'pending-sweep-old',
  `DELETE FROM pending_requests WHERE updated_at_ms < $1
     AND request_id IN (SELECT request_id FROM pending_requests WHERE updated_at_ms < $1 ORDER BY updated_at_ms LIMIT $2)
   RETURNING request_id, CASE WHEN input IS NOT NULL AND has_finished = 1 THEN 1 ELSE 0 END AS has_ended`,
);
// Complete: dispatched, with a first token, finished. Each batch begins where the one before it ended, so that incomplete
// requests between complete ones are read once.
const IS_COMPLETE =
  'updated_at_ms >= $1 AND updated_at_ms < $2 AND has_finished = 1 AND input IS NOT NULL AND ttft_ms IS NOT NULL';
const sweepCompleteSql = statement<{ updated_at_ms: number }>(
  'pending-sweep-complete',
  `DELETE FROM pending_requests WHERE ${IS_COMPLETE}
     AND request_id IN (SELECT request_id FROM pending_requests WHERE ${IS_COMPLETE} ORDER BY updated_at_ms LIMIT $3)
   RETURNING updated_at_ms`,
);

interface JoinInput {
  readonly events: readonly ObservationEvent[];
  /** Two rising numbers for each event, for the samples that it may make. */
  readonly sampleIds: readonly number[];
  readonly nowMs: number;
}

export interface JoinedSample extends Sample {
  readonly requestId: string;
}

export interface Joined {
  readonly refusals: readonly EventRefusal[];
  readonly samples: readonly JoinedSample[];
  /** Requests whose end was reported before their dispatch, which is one of the events. */
  readonly ended: readonly string[];
}

export const joinEventsProcedure: Procedure<JoinInput, Joined> = conditionalProcedure(
  import.meta.url,
  'joinEventsProcedure',
  async (tx, { events, sampleIds, nowMs }) => {
    const refusals: EventRefusal[] = [];
    const samples: JoinedSample[] = [];
    const ended: string[] = [];
    for (const [index, event] of events.entries()) {
      const joined = await joinEvent(tx, dateByReport(event, nowMs), nowMs);
      if (typeof joined === 'string') {
        refusals.push({ index, reason: joined });
        continue;
      }
      if (event.kind === 'dispatched' && joined.hasFinished) ended.push(event.requestId);
      for (const [i, observation] of joined.observations.entries()) {
        const sample = { id: sampleIds[2 * index + i]!, requestId: event.requestId, observation };
        const step = insertSampleStatement(sample);
        await tx.run(step.statement, step.parameters);
        samples.push(sample);
      }
    }
    return { refusals, samples, ended };
  },
);

interface JoinedEvent {
  /** The observations that the event completes. */
  readonly observations: readonly Sample['observation'][];
  readonly hasFinished: boolean;
}

/**
 * Dates an event that is ahead to its report. Otherwise the rows of a caller whose clock is ahead would be the newest ones until
 * their time comes, and hide those of others.
 */
function dateByReport<Event extends ObservationEvent>(event: Event, nowMs: number): Event {
  return event.atMs <= nowMs ? event : { ...event, atMs: nowMs };
}

/** Returns why the event is refused if it is. */
async function joinEvent(tx: Transaction, event: ObservationEvent, nowMs: number): Promise<JoinedEvent | string> {
  switch (event.kind) {
    case 'dispatched':
      return await joinDispatch(tx, event, nowMs);
    case 'first_token':
      return await joinFirstToken(tx, event, nowMs);
    case 'finished':
      return await joinFinish(tx, event, nowMs);
    case 'observation':
      return await joinWhole(tx, event, nowMs);
  }
}

type EventOf<Kind extends ObservationEvent['kind']> = Extract<ObservationEvent, { readonly kind: Kind }>;

async function joinDispatch(tx: Transaction, event: EventOf<'dispatched'>, nowMs: number) {
  const { requestId, targetModel, atMs } = event;
  const row = [requestId, targetModel, encodeDispatch(event), Math.round(atMs), nowMs];
  const [pending] = await tx.run(addDispatchSql, row);
  if (pending === undefined) return `request_id "${requestId}" was dispatched already`;
  const { ttft_ms: ttftMs, tpot_ms: tpotMs, output_tokens } = pending;
  return observe(pending, { ttftMs, tpotMs, outputTokens: output_tokens ?? undefined });
}

async function joinFirstToken(tx: Transaction, event: EventOf<'first_token'>, nowMs: number) {
  const { requestId, atMs, ttftMs } = event;
  const [pending] = await tx.run(addFirstTokenSql, [requestId, Math.round(atMs), ttftMs, nowMs]);
  if (pending === undefined) return `request_id "${requestId}" had its first token already`;
  return observe(pending, { ttftMs, tpotMs: null });
}

async function joinFinish(tx: Transaction, event: EventOf<'finished'>, nowMs: number) {
  const { requestId, atMs, tpotMs = null, outputTokens } = event;
  const [pending] = await tx.run(addFinishSql, [requestId, Math.round(atMs), tpotMs, outputTokens, nowMs]);
  if (pending === undefined) return `request_id "${requestId}" was finished already`;
  return observe(pending, { ttftMs: null, tpotMs, outputTokens });
}

async function joinWhole(tx: Transaction, event: EventOf<'observation'>, nowMs: number) {
  const { requestId, targetModel, input, history, atMs, ttftMs, tpotMs, outputTokens } = event;
  if (requestId !== '') {
    const times = [ttftMs ?? null, tpotMs ?? null];
    const row = [requestId, targetModel, encodeDispatch(event), Math.round(atMs), ...times, nowMs];
    const [added] = await tx.run(addWholeSql, row);
    if (added === undefined) return `request_id "${requestId}" was reported already`;
  }
  return { observations: [{ targetModel, input, history, atMs, ttftMs, tpotMs, outputTokens }], hasFinished: true };
}

/** The input of a request as one text; missing values of the history are null. */
function encodeDispatch({ input, history }: Pick<DispatchedEvent, 'input' | 'history'>): string {
  return JSON.stringify(history === undefined ? input : { ...input, history: Array.from(history) });
}

function decodeDispatch(text: string): Pick<DispatchedEvent, 'input' | 'history'> {
  const { history, ...stored } = JSON.parse(text) as Partial<ObservedInput> & {
    readonly history?: readonly (number | null)[];
  };
  // A row of an earlier program lacks newer fields: they are 0.
  const input: ObservedInput = { ...createInputDraft(), ...stored };
  return history === undefined ? { input } : { input, history: history.map((value) => value ?? Number.NaN) };
}

interface Times {
  readonly ttftMs: number | null;
  readonly tpotMs: number | null;
  /** The length of the answer, on which the certainty of its time per token depends. */
  readonly outputTokens?: number | undefined;
}

/** Makes no sample until the dispatch is known, which has the load of the server. */
function observe(pending: Pending, { ttftMs, tpotMs, outputTokens }: Times): JoinedEvent {
  const { target_model, input, at_ms } = pending;
  const hasFinished = pending.has_finished === 1;
  if (target_model === null || input === null) return { observations: [], hasFinished };
  const base = {
    targetModel: target_model,
    ...decodeDispatch(input),
    atMs: at_ms,
    ttftMs: undefined,
    tpotMs: undefined,
  };
  // An answer of one token has no TPOT, and its length counts in the mean length of answers.
  const hasAnswer = tpotMs !== null || outputTokens === 1;
  const observations = [
    ...(ttftMs === null ? [] : [{ ...base, ttftMs }]),
    ...(hasAnswer ? [{ ...base, tpotMs: tpotMs ?? undefined, outputTokens }] : []),
  ];
  return { observations, hasFinished };
}

export async function joinEvents(store: Store, input: JoinInput): Promise<Joined> {
  return await store.call(joinEventsProcedure, input);
}

/** Forgets requests without events since `beforeMs`, complete or not; returns their number. */
export async function sweepOldRequests(
  store: Store,
  { beforeMs, onIncomplete }: { readonly beforeMs: number; readonly onIncomplete: (count: number) => void },
  pace: SweepPace = SWEEP_WITHOUT_PAUSES,
): Promise<number> {
  return await repeatBatches(pace, async (limit) => {
    const rows = await store.write(sweepOldSql, [beforeMs, limit]);
    // Called after each batch, since the next one may fail.
    onIncomplete(rows.filter((row) => row.has_ended === 0).length);
    return rows.length;
  });
}

/** Forgets requests that were completed in this time; returns their number. */
export async function sweepCompleteRequests(
  store: Store,
  { fromMs, beforeMs }: { readonly fromMs: number; readonly beforeMs: number },
  pace: SweepPace = SWEEP_WITHOUT_PAUSES,
): Promise<number> {
  let sweptMs = fromMs;
  return await repeatBatches(pace, async (limit) => {
    const rows = await store.write(sweepCompleteSql, [sweptMs, beforeMs, limit]);
    for (const row of rows) sweptMs = Math.max(sweptMs, row.updated_at_ms);
    return rows.length;
  });
}
