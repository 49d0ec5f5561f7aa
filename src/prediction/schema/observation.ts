/** Defines an observation: a served request with its load and times, and finds mistakes in it. */
import { findBrokenBound, MAX_COUNT } from './input-fields.ts';
import { findTimeFault } from './milliseconds.ts';
import type { ObservedInput } from './observation-event.ts';

/** A request that was served: the metrics of its server when it was chosen, and how long it took. */
export interface Observation {
  readonly targetModel: string;
  readonly input: ObservedInput;
  /** Milliseconds since the epoch; undefined when the source has no times, then order is time. */
  readonly atMs: number | undefined;
  readonly ttftMs: number | undefined;
  /** The mean time per token after the first; undefined also for an answer of one token. */
  readonly tpotMs: number | undefined;
  /** How long the answer was; unknown when undefined or 0. */
  readonly outputTokens?: number | undefined;
  /** The request ended and its TPOT was known at this time; estimated when undefined. */
  readonly endMs?: number;
  /** The history of the server as it was known when the request was sent, in the order of `HISTORY_COLUMNS`; missing when undefined. */
  readonly history?: ArrayLike<number> | undefined;
  /** Which experiment it is of, where a log has several. */
  readonly run?: string;
}

/** The reason why this row cannot be used, naming the field; undefined for a usable row. */
export function findMistake(row: Observation): string | undefined {
  const mistake = findInputMistake(row.input);
  if (mistake !== undefined) return mistake;
  if (row.ttftMs === undefined && row.tpotMs === undefined)
    return row.outputTokens === 1
      ? 'ttft_millis must be present when output_tokens is 1'
      : 'ttft_millis or tpot_millis must be present';
  return (
    findTimeMistake('ttft_millis', row.ttftMs) ??
    findTimeMistake('tpot_millis', row.tpotMs) ??
    findTokenMistake(row.outputTokens)
  );
}

function findTokenMistake(tokens: number | undefined): string | undefined {
  if (tokens === undefined || (tokens >= 0 && tokens <= MAX_COUNT)) return undefined;
  return `output_tokens must be 0 to ${MAX_COUNT}`;
}

export function findInputMistake(input: ObservedInput): string | undefined {
  const broken = findBrokenBound(input);
  if (broken === undefined) return undefined;
  if (broken.bound === 'maximum') return `${broken.name} must be at most ${MAX_COUNT}`;
  return `${broken.name} must be a finite number of 0 or more`;
}

function findTimeMistake(name: string, ms: number | undefined): string | undefined {
  const fault = ms === undefined ? undefined : findTimeFault(ms);
  return fault && `${name} ${fault}`;
}
