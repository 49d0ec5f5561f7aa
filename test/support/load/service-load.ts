/**
 * Puts load on all three parts of several processes at the same time, with callers as a user writes them: a call that fails with 503
 * or breaks is sent again, and acknowledged calls are recorded. `findLosses` compares the record with the store and the receivers.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Store } from '../../../src/database/store.ts';
import type { Answer } from '../authorization/authorization-server.ts';
import type { ReceivedRequest } from '../network/receiver.ts';
import type { Program } from '../programs/start-program.ts';
import { numberedPush, type PublishingService } from '../webhooks/publishing-service.ts';
import { callUntilAnswered, post, RETRY_MS, shareNumbers } from './service-load-calls.ts';
import { predictAll } from './service-load-predict.ts';
import { exchangeAll, prepareExchanges, refreshAll } from './service-load-tokens.ts';
import { findLosses } from './service-losses.ts';

export interface LoadScale {
  /** The number of events; each goes to every hook. */
  readonly events: number;
  readonly refreshes: number;
  readonly observations: number;
  readonly codes: number;
}

export interface LoadCounts {
  accepted: number;
  received: number;
  refreshed: number;
  exchanged: number;
  observed: number;
  predicted: number;
  /** The number of calls that had to be sent again, by their answer. */
  readonly repeated: Map<string, number>;
  /** Codes that were exchanged although the answer was lost. */
  spentUnanswered: number;
  slowestPredictMs: number;
}

export interface ServiceLoad {
  readonly counts: LoadCounts;
  /** The failures so far. */
  readonly failures: string[];
  /** Receivers call this with each request. */
  receive(hook: number, request: ReceivedRequest): void;
  /** Resolves when all calls are acknowledged, except Predict, which goes on until `stop`. */
  run(): Promise<void>;
  stop(): void;
  /** Resolves when the calls that are under way now have ended. */
  settle(): Promise<unknown>;
  /** When the first event was accepted after this moment. */
  firstAcceptedAfter(ms: number): number | undefined;
  /** When the first delivery arrived of an event that was accepted after this moment. */
  firstDeliveryAfter(ms: number): number | undefined;
  /** Deliveries that arrived more than once under one id. */
  countSentAgain(): number;
  findLosses(store: Store): Promise<string[]>;
}

export interface LoadParts {
  readonly service: Pick<PublishingService, 'token'>;
  readonly store: Store;
  /** The processes that take calls now; the list may change. */
  readonly programs: readonly Program[];
  readonly hooks: number;
  readonly scale: LoadScale;
}

const EVENT_CALLERS = 6;
/** As many as two processes send at once: a backlog of a slow machine would delay the first delivery after a failover. */
const MAX_UNDER_WAY = 512;
const OBSERVATIONS_A_CALL = 40;
const TARGET_MODELS = 4;

export async function createServiceLoad(parts: LoadParts): Promise<ServiceLoad> {
  const state = createState(parts);
  const exchanges = await prepareExchanges(parts);
  const run = async (): Promise<void> => {
    void predictAll(state);
    await Promise.all([
      sendEvents(state),
      refreshAll(state, exchanges.tokens),
      exchangeAll(state, exchanges.codes),
      reportAll(state),
    ]);
  };
  return {
    counts: state.counts,
    failures: state.failures,
    receive: (hook, received) => recordDelivery(state, hook, received),
    run,
    stop: () => state.stopping.abort(),
    settle: () => Promise.allSettled(state.underWay),
    firstAcceptedAfter: (ms) => findFirst([...state.acceptedAtMs.values()].filter((atMs) => atMs > ms)),
    firstDeliveryAfter: (ms) => findFirstDelivery(state, ms),
    countSentAgain: () => [...state.deliveries.values()].filter((times) => times > 1).length,
    findLosses: (store) => findLosses(state, store),
  };
}

function createState(parts: LoadParts) {
  const counts: LoadCounts = {
    accepted: 0,
    received: 0,
    refreshed: 0,
    exchanged: 0,
    observed: 0,
    predicted: 0,
    repeated: new Map(),
    spentUnanswered: 0,
    slowestPredictMs: 0,
  };
  return {
    ...parts,
    counts,
    failures: [] as string[],
    stopping: new AbortController(),
    underWay: new Set<Promise<Answer>>(),
    acceptedAtMs: new Map<number, number>(),
    receivedAtMs: Array.from({ length: parts.hooks }, () => new Map<number, number>()),
    deliveries: new Map<string, number>(),
    observed: new Set<number>(),
    turn: 0,
  };
}
type State = ReturnType<typeof createState>;

function sendEvents(state: State): Promise<unknown> {
  const headers = { authorization: `Bearer ${state.service.token}`, 'content-type': 'application/json' };
  return shareNumbers(state.scale.events, EVENT_CALLERS, async (number) => {
    // The counts of the load have no event.
    while (countUnderWay(state) > MAX_UNDER_WAY && !state.stopping.signal.aborted) await sleep(RETRY_MS);
    const body = JSON.stringify(numberedPush(number + 1));
    const { status, text } = await callUntilAnswered(state, (url) =>
      post(`${url}/api/v5/repos/grace/doors/events`, body, headers),
    );
    if (status >= 300) return void state.failures.push(`event ${number + 1}: ${status} ${text}`);
    state.acceptedAtMs.set(number + 1, performance.now());
    state.counts.accepted += 1;
  });
}

function countUnderWay({ counts, hooks }: State): number {
  return counts.accepted * hooks - counts.received;
}

function recordDelivery(state: State, hook: number, { headers, body }: ReceivedRequest): void {
  const { after } = JSON.parse(body.toString('utf8')) as { after: string };
  const number = Number.parseInt(after, 16);
  const receivedAtMs = state.receivedAtMs[hook]!;
  if (!receivedAtMs.has(number)) state.counts.received += 1;
  receivedAtMs.set(number, receivedAtMs.get(number) ?? performance.now());
  const uuid = String(headers['x-gitcode-delivery']);
  state.deliveries.set(uuid, (state.deliveries.get(uuid) ?? 0) + 1);
}

function findFirstDelivery({ acceptedAtMs, receivedAtMs }: State, ms: number): number | undefined {
  const after = receivedAtMs.flatMap((byNumber) =>
    [...byNumber].filter(([number]) => (acceptedAtMs.get(number) ?? 0) > ms).map(([, atMs]) => atMs),
  );
  return findFirst(after);
}

function findFirst(times: readonly number[]): number | undefined {
  return times.length === 0 ? undefined : times.reduce((one, other) => Math.min(one, other));
}

function reportAll(state: State): Promise<unknown> {
  const calls = Math.ceil(state.scale.observations / OBSERVATIONS_A_CALL);
  return shareNumbers(calls, 2, async (call) => {
    const numbers = Array.from({ length: OBSERVATIONS_A_CALL }, (_, index) => call * OBSERVATIONS_A_CALL + index + 1);
    const body = numbers.map(renderObservation).join('\n');
    // Spread over the whole load, too.
    while (state.counts.accepted < (state.scale.events * call) / calls - 50) await sleep(RETRY_MS);
    const { status, text } = await callUntilAnswered(state, (url) =>
      post(`${url}/observation.v1.ObservationService/ReportBatch`, body, { 'content-type': 'application/jsonl' }),
    );
    if (status !== 200 || text.includes('reason')) return void state.failures.push(`report: ${status} ${text}`);
    for (const number of numbers) state.observed.add(number);
    state.counts.observed = state.observed.size;
  });
}

/** Uses the number as the length of the prompt, which is stored unchanged. */
function renderObservation(number: number): string {
  const input = { inputTokenLength: number, serverIp: '10.0.0.1' };
  return JSON.stringify({
    observation: { targetModel: `m${number % TARGET_MODELS}`, input, ttftMillis: 100 + (number % 50), outputTokens: 1 },
  });
}
