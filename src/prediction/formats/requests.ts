/**
 * Reads a request log, and turns its requests into observations with their reconstructed load. The load at a start is
 * reconstructed only from earlier events on the same server of the same run: a request under way counts by its age, not by its
 * end.
 */
import { type ReplayedRequest, replayHistory } from '../history/replay-history.ts';
import { fillMetrics } from '../schema/input-fields.ts';
import { FIRST_EPOCH_MS } from '../schema/milliseconds.ts';
import { findMistake, type Observation } from '../schema/observation.ts';
import type { NumberedRecord } from './csv.ts';
import type { ReadRow } from './parse-record.ts';
import { type Load, reconstructLoads } from './request-load.ts';
import {
  type LoggedRequest,
  OPTIONAL_REQUEST_FIELDS,
  parseRequest,
  REQUEST_FIELDS,
  tpotOf,
  ttftOf,
} from './request-log.ts';

export interface RequestsOptions {
  /** Tokens that the KV cache of one server holds. */
  readonly kvCapacityTokens: number;
  readonly targetModel: string;
  /** Called for each unused field of each row. */
  readonly onIgnoredField?: ((name: string) => void) | undefined;
}

interface NumberedRequest extends LoggedRequest {
  readonly line: number;
  readonly place?: string;
}

export const KNOWN_REQUEST_FIELDS: ReadonlySet<string> = new Set([...REQUEST_FIELDS, ...OPTIONAL_REQUEST_FIELDS]);

/** Yields observations in the order of their starts: over all runs if they share a clock, else run after run. */
export async function* readRequests(
  records: AsyncIterable<NumberedRecord>,
  options: RequestsOptions,
): AsyncGenerator<ReadRow> {
  const requests: NumberedRequest[] = [];
  for await (const { line, place, record, problem } of records) {
    const at = place === undefined ? { line } : { line, place };
    for (const name of Object.keys(record ?? {})) if (!KNOWN_REQUEST_FIELDS.has(name)) options.onIgnoredField?.(name);
    const parsed = record === undefined ? { refusal: problem ?? 'not a record' } : parseRequest(record);
    if ('refusal' in parsed) yield { ...at, refusal: parsed.refusal };
    else requests.push({ ...parsed.request, ...at });
  }
  const loads = reconstructLoads(requests, options.kvCapacityTokens);
  const histories = replayHistory(requests.map(toReplayed));
  for (const row of sortByStart(requests)) {
    const request = requests[row]!;
    const observation = {
      ...toObservation(request, loads[row]!, options.targetModel),
      history: histories[row]!,
    };
    // The tokens of many long requests can add up to more than an input may have.
    const mistake = findMistake(observation);
    const { line, place } = request;
    const at = place === undefined ? { line } : { line, place };
    yield mistake === undefined ? { ...at, observation } : { ...at, refusal: mistake };
  }
}

function sortByStart(requests: readonly NumberedRequest[]): number[] {
  const sharesClock = requests.every((request) => request.startMs >= FIRST_EPOCH_MS);
  const runs = new Set(requests.map((request) => request.run));
  const orderOfRun = new Map([...runs].map((run, i) => [run, sharesClock ? 0 : i]));
  const order = requests.map((request) => orderOfRun.get(request.run)!);
  return [...requests.keys()].sort(
    (a, b) => order[a]! - order[b]! || requests[a]!.startMs - requests[b]!.startMs || a - b,
  );
}

/** Servers of different runs are different servers, even with the same name. */
function nameServer({ run, server }: LoggedRequest): string {
  return `${run}/${server}`;
}

function toReplayed(request: LoggedRequest): ReplayedRequest {
  const { startMs: atMs, firstTokenMs } = request;
  const tokens = request.inputTokens - request.cachedTokens;
  return { server: nameServer(request), atMs, firstTokenMs, tokens };
}

/** Numbers that a log does not have are 0, as for callers that do not know them. */
export function toObservation(request: LoggedRequest, load: Load, targetModel: string): Observation {
  return {
    targetModel: targetModel || (request.targetModel ?? ''),
    input: {
      podType: '',
      ...fillMetrics(() => 0),
      inputTokenLength: request.inputTokens,
      prefixCacheScore: request.inputTokens === 0 ? 0 : request.cachedTokens / request.inputTokens,
      numRequestWaiting: load.waiting,
      numRequestRunning: load.running,
      kvCacheUsage: load.kvCacheUsage,
      inflightTokens: load.inflightTokens,
      serverIp: request.serverIp ?? nameServer(request),
    },
    atMs: request.startMs,
    ttftMs: ttftOf(request),
    tpotMs: tpotOf(request),
    endMs: request.endMs,
    outputTokens: request.outputTokens,
    run: request.run,
  };
}
