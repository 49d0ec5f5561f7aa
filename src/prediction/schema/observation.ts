/** Defines an observation: a served request with its load and times, and finds mistakes in it. */
import { findBrokenBound, MAX_COUNT } from './input-fields.ts';
import { findTimeFault } from './milliseconds.ts';
import type { ObservedInput } from './observation-event.ts';

/** A served request: the metrics of its server when it was chosen, and the observed times. */
export interface Observation {
  readonly targetModel: string;
  readonly input: ObservedInput;
  /** Milliseconds since the epoch; undefined if the source has no times: then the order of rows is the order of time. */
  readonly atMs: number | undefined;
  readonly ttftMs: number | undefined;
  /** The mean time per token after the first; undefined also for an answer of one token. */
  readonly tpotMs: number | undefined;
  /** The length of the answer; not known if undefined or 0. */
  readonly outputTokens?: number | undefined;
  /** When the request ended and its TPOT became known, in milliseconds since the epoch; estimated when undefined. */
  readonly endMs?: number;
  /** The history of the server as known when the request was sent, in the order of `HISTORY_COLUMNS`; missing when undefined. */
  readonly history?: ArrayLike<number> | undefined;
  /** The name of the run (recording), where a log has several. */
  readonly run?: string;
}

/** Returns why this row cannot be used, with the name of the field; undefined for a usable row. */
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
