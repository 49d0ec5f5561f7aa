/**
 * Load on all three parts of several processes at the same time, by callers as a user writes them: what fails with 503 or
 * breaks is sent again, and what was acknowledged is written down. `findLosses` compares that with what is stored and
 * what receivers got.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Store } from '../../src/database/store.ts';
import { realWorld } from '../../src/world.ts';
import { type PublishingService, numberedPush } from './publishing-service.ts';
import {
  type Answer,
  type Fields,
  obtainCode,
  obtainTokens,
  registerApplication,
  request,
} from './authorization-server.ts';
import { createCaller } from './load-caller.ts';
import type { ReceivedRequest } from './receiver.ts';
import { predictAll } from './service-load-predict.ts';
import { findLosses } from './service-losses.ts';
import type { Program } from './start-program.ts';

export interface LoadScale {
  /** Each goes to every hook. */
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
  /** Calls that had to be sent again, by what they were answered. */
  readonly repeated: Map<string, number>;
  /** Codes that are spent although their answer was lost. */
  spentUnanswered: number;
  slowestPredictMs: number;
}

export interface ServiceLoad {
  readonly counts: LoadCounts;
  /** What should not have happened so far. */
  readonly failures: string[];
  /** For receivers, with each request that they get. */
  receive(hook: number, request: ReceivedRequest): void;
  /** Resolves when all was acknowledged. Predict goes on until `stop`. */
  run(): Promise<void>;
  stop(): void;
  /** Resolves when the calls that are under way now have ended. */
  settle(): Promise<unknown>;
  /** When the first event was accepted after this moment. */
  firstAcceptedAfter(ms: number): number | undefined;
  /** When the first delivery came of an event that was accepted after this moment. */
  firstDeliveryAfter(ms: number): number | undefined;
  /** Deliveries that came more than once under one id. */
  countSentAgain(): number;
  findLosses(store: Store): Promise<string[]>;
}

export interface LoadParts {
  readonly service: Pick<PublishingService, 'token'>;
  readonly store: Store;
  /** Those that take calls now; the list may change. */
  readonly programs: readonly Program[];
  readonly hooks: number;
  readonly scale: LoadScale;
}

const EVENT_CALLERS = 6;
/** As many as two processes send at once: a backlog of a slow machine would delay the first delivery after a failover. */
const MAX_UNDER_WAY = 512;
const CHAINS = 24;
const CODE_CALLERS = 2;
const OBSERVATIONS_A_CALL = 40;
const TARGET_MODELS = 4;
const RETRY_MS = 100;
const CALL_TIMEOUT_MS = 30_000;

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

interface Exchanges {
  readonly tokens: readonly string[];
  readonly codes: readonly Fields[];
}

async function prepareExchanges({ store, programs, scale }: LoadParts): Promise<Exchanges> {
  const at = { url: programs[0]!.httpUrl, store, world: realWorld };
  const person = await createCaller(at);
  const application = await registerApplication(at);
  const { clientId, clientSecret } = application;
  const tokens: string[] = [];
  for (let chain = 0; chain < CHAINS; chain += 1)
    tokens.push((await obtainTokens(at, person, application)).refresh_token);
  const codes: Fields[] = [];
  for (let made = 0; made < scale.codes; made += 1) {
    const code = await obtainCode(at, person, { client_id: clientId });
    codes.push({ grant_type: 'authorization_code', code, client_id: clientId, client_secret: clientSecret });
  }
  return { tokens, codes };
}

function nextUrl(state: State): string {
  state.turn += 1;
  return state.programs[state.turn % state.programs.length]!.httpUrl;
}

type FinalAnswer = Pick<Answer, 'status' | 'text'> & { readonly tries: number };

/** Sends it to one process after the other until it is answered with anything but an outage. */
async function callUntilAnswered(state: State, send: (url: string) => Promise<Answer>): Promise<FinalAnswer> {
  for (let tries = 1; ; tries += 1) {
    const call = send(nextUrl(state));
    state.underWay.add(call);
    const answer = await call
      .catch((error: unknown) => describeFault(error))
      .finally(() => state.underWay.delete(call));
    if (typeof answer !== 'string' && answer.status !== 503) return { status: answer.status, text: answer.text, tries };
    const what = typeof answer === 'string' ? answer : String(answer.status);
    state.counts.repeated.set(what, (state.counts.repeated.get(what) ?? 0) + 1);
    // As clients do between two tries: nothing tells them when the service is back.
    await sleep(RETRY_MS);
  }
}

function describeFault(error: unknown): string {
  const cause = (error as { cause?: { code?: string } }).cause;
  return cause?.code ?? (error as Error).name;
}

function post(url: string, body: string, headers: Readonly<Record<string, string>>): Promise<Answer> {
  return request(url, { method: 'POST', body, headers, signal: AbortSignal.timeout(CALL_TIMEOUT_MS) });
}

/** One caller after the other takes the next number, until there are no more. */
function shareNumbers(count: number, callers: number, call: (number: number) => Promise<void>): Promise<unknown> {
  let next = 0;
  const work = async (): Promise<void> => {
    for (let number = next++; number < count; number = next++) await call(number);
  };
  return Promise.all(Array.from({ length: callers }, work));
}

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

function postToken(url: string, fields: Fields): Promise<Answer> {
  return post(`${url}/oauth/token`, new URLSearchParams(fields).toString(), {
    'content-type': 'application/x-www-form-urlencoded',
  });
}

/** One of this many refreshes goes to two processes at the same time: both must get the same successor. */
const TWICE_EVERY = 10;

async function refreshAll(state: State, tokens: readonly string[]): Promise<void> {
  const chains = [...tokens];
  await Promise.all(
    chains.map(async (_, chain) => {
      while (state.counts.refreshed < state.scale.refreshes) {
        const fields = { grant_type: 'refresh_token', refresh_token: chains[chain]! };
        const isTwice = state.counts.refreshed % TWICE_EVERY === 0;
        const refresh = () => callUntilAnswered(state, (url) => postToken(url, fields));
        const answers = await Promise.all(isTwice ? [refresh(), refresh()] : [refresh()]);
        const texts = new Set(answers.map(({ text }) => text));
        const [{ status, text }] = answers as [FinalAnswer];
        if (status !== 200 || texts.size > 1)
          return void state.failures.push(
            `refresh: ${answers.map((each) => `${each.status} ${each.text}`).join(' | ')}`,
          );
        chains[chain] = (JSON.parse(text) as { refresh_token: string }).refresh_token;
        state.counts.refreshed += 1;
      }
    }),
  );
}

function exchangeAll(state: State, codes: readonly Fields[]): Promise<unknown> {
  return shareNumbers(codes.length, CODE_CALLERS, async (number) => {
    const fields = codes[number]!;
    // All along the load, and not at its beginning.
    while (state.counts.accepted < (state.scale.events * number) / codes.length) await sleep(RETRY_MS);
    const { status, text, tries } = await callUntilAnswered(state, (url) => postToken(url, fields));
    if (status === 200) state.counts.exchanged += 1;
    else if (status === 400 && tries > 1) state.counts.spentUnanswered += 1;
    else state.failures.push(`code: ${status} ${text}`);
  });
}

function reportAll(state: State): Promise<unknown> {
  const calls = Math.ceil(state.scale.observations / OBSERVATIONS_A_CALL);
  return shareNumbers(calls, 2, async (call) => {
    const numbers = Array.from({ length: OBSERVATIONS_A_CALL }, (_, index) => call * OBSERVATIONS_A_CALL + index + 1);
    const body = numbers.map(renderObservation).join('\n');
    // All along the load, too.
    while (state.counts.accepted < (state.scale.events * call) / calls - 50) await sleep(RETRY_MS);
    const { status, text } = await callUntilAnswered(state, (url) =>
      post(`${url}/observation.v1.ObservationService/ReportBatch`, body, { 'content-type': 'application/jsonl' }),
    );
    if (status !== 200 || text.includes('reason')) return void state.failures.push(`report: ${status} ${text}`);
    for (const number of numbers) state.observed.add(number);
    state.counts.observed = state.observed.size;
  });
}

/** The number is the length of the prompt: it is stored as it is. */
function renderObservation(number: number): string {
  const input = { inputTokenLength: number, serverIp: '10.0.0.1' };
  return JSON.stringify({
    observation: { targetModel: `m${number % TARGET_MODELS}`, input, ttftMillis: 100 + (number % 50), outputTokens: 1 },
  });
}
