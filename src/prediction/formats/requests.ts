/**
 * Request-level logs: when each request started, had its first token and ended, without the load of its server. The
 * load at a start is reconstructed from what had happened by then on the same server of the same run, never from what
 * came after: a request under way counts by its age, not by its end.
 */
import { findMistake, type Observation } from '../observation.ts';
import type { NumberedRecord } from './csv.ts';
import type { ReadRow } from './read-observations.ts';
import type { RawRecord } from './record.ts';

export interface RequestsOptions {
  /** Tokens that the KV cache of one server holds. */
  readonly kvCapacityTokens: number;
  readonly targetModel: string;
}

interface LoggedRequest {
  readonly line: number;
  readonly run: string;
  readonly server: string;
  readonly startMs: number;
  readonly firstTokenMs: number;
  readonly endMs: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** Before a server of a run has finished anything, this is how long a token is taken to last. */
const FIRST_TOKEN_PACE_MS = 30;

/** A smaller start is no time since the epoch, but one since the run began. */
const FIRST_EPOCH_MS = 1e11;

/** The rows come in the order of their starts: of all runs together when they share a clock, else run after run. */
export async function* readRequests(
  records: AsyncIterable<NumberedRecord>,
  options: RequestsOptions,
): AsyncGenerator<ReadRow> {
  const requests: LoggedRequest[] = [];
  for await (const { line, record, problem } of records) {
    const parsed = record === undefined ? (problem ?? 'not a record') : parseRequest(line, record);
    if (typeof parsed === 'string') yield { line, refusal: parsed };
    else requests.push(parsed);
  }
  const runs = [...new Set(requests.map((request) => request.run))];
  const sharesClock = requests.every((request) => request.startMs >= FIRST_EPOCH_MS);
  const runOrder = new Map(runs.map((run, i) => [run, sharesClock ? 0 : i]));
  requests.sort((a, b) => a.startMs - b.startMs || a.line - b.line);
  const byPlace = Map.groupBy(requests, ({ run, server }) => `${run}\0${server}`);
  const rebuilt = [...byPlace.values()].flatMap((group) => rebuildLoad(group, options));
  rebuilt.sort(
    ({ request: a }, { request: b }) =>
      runOrder.get(a.run)! - runOrder.get(b.run)! || a.startMs - b.startMs || a.line - b.line,
  );
  for (const { request, observation } of rebuilt) {
    const mistake = findMistake(observation);
    if (mistake !== undefined) yield { line: request.line, refusal: mistake };
    else yield { line: request.line, observation };
  }
}

function parseRequest(line: number, record: RawRecord): LoggedRequest | string {
  const number = (name: string) => (record[name] === '' || record[name] === null ? Number.NaN : Number(record[name]));
  const names = ['start_ms', 'first_token_ms', 'end_ms', 'input_tokens', 'output_tokens'] as const;
  for (const name of names) {
    const value = number(name);
    if (!(value >= 0 && value < Number.POSITIVE_INFINITY)) return `${name} must be a finite number of 0 or more`;
  }
  const request: LoggedRequest = {
    line,
    run: readName(record.run),
    server: readName(record.server),
    startMs: number('start_ms'),
    firstTokenMs: number('first_token_ms'),
    endMs: number('end_ms'),
    inputTokens: number('input_tokens'),
    outputTokens: number('output_tokens'),
  };
  if (request.firstTokenMs < request.startMs) return 'first_token_ms must not be before start_ms';
  if (request.endMs < request.firstTokenMs) return 'end_ms must not be before first_token_ms';
  return request;
}

function readName(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

interface Rebuilt {
  readonly request: LoggedRequest;
  readonly observation: Observation;
}

/** `requests` are those of one server in one run, in the order of their starts. */
function rebuildLoad(
  requests: readonly LoggedRequest[],
  { kvCapacityTokens, targetModel }: RequestsOptions,
): Rebuilt[] {
  const rebuilt: Rebuilt[] = [];
  let underWay: LoggedRequest[] = [];
  let paceMs = FIRST_TOKEN_PACE_MS;
  for (const request of requests) {
    const nowMs = request.startMs;
    const ended = underWay.filter((other) => other.endMs <= nowMs);
    for (const other of ended) paceMs = learnPace(paceMs, other);
    underWay = underWay.filter((other) => other.endMs > nowMs);
    rebuilt.push({
      request,
      observation: observe(request, underWay, { nowMs, paceMs, kvCapacityTokens, targetModel }),
    });
    underWay.push(request);
  }
  return rebuilt;
}

function learnPace(paceMs: number, { firstTokenMs, endMs, outputTokens }: LoggedRequest): number {
  return outputTokens > 1 ? 0.9 * paceMs + 0.1 * ((endMs - firstTokenMs) / (outputTokens - 1)) : paceMs;
}

interface Moment {
  readonly nowMs: number;
  readonly paceMs: number;
  readonly kvCapacityTokens: number;
  readonly targetModel: string;
}

function observe(request: LoggedRequest, underWay: readonly LoggedRequest[], moment: Moment): Observation {
  const { nowMs, paceMs, kvCapacityTokens, targetModel } = moment;
  const waiting = underWay.filter((other) => other.firstTokenMs > nowMs);
  const running = underWay.filter((other) => other.firstTokenMs <= nowMs);
  // How many tokens a request will generate is not known yet; how long it has been generating is.
  const held = running.reduce((sum, other) => sum + other.inputTokens + (nowMs - other.firstTokenMs) / paceMs, 0);
  const queued = waiting.reduce((sum, other) => sum + other.inputTokens, 0);
  const { startMs, firstTokenMs, endMs, outputTokens } = request;
  const ttftMs = firstTokenMs - startMs;
  const tpotMs = outputTokens > 1 ? (endMs - firstTokenMs) / (outputTokens - 1) : 0;
  return {
    targetModel,
    input: {
      podType: '',
      inputTokenLength: request.inputTokens,
      prefixCacheScore: 0,
      numRequestWaiting: waiting.length,
      numRequestRunning: running.length,
      kvCacheUsage: held / kvCapacityTokens,
      inflightTokens: Math.round(held + queued),
      hbmUtilization: 0,
      aiCoreUtilization: 0,
      bandwidthUtilization: 0,
      serverIp: request.server,
    },
    atMs: startMs,
    ttftMs: ttftMs > 0 ? ttftMs : undefined,
    tpotMs: tpotMs > 0 ? tpotMs : undefined,
    endMs,
    run: request.run,
  };
}
