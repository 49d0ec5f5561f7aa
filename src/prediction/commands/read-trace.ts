/** Reads a recorded trace of requests for `trivet simulate`. */
import { readNamedFile } from '../../command-line/output.ts';
import { Failure } from '../../errors.ts';
import { findBlockMistake, type TraceLine } from '../simulator/workload.ts';

export interface TraceUnits {
  /** How many tokens the block of each id in `hash_ids` has. */
  readonly blockTokens: number;
  /** The unit of `timestamp`. */
  readonly unit: 'ms' | 's';
}

/**
 * Reads the requests in the order of time, in milliseconds. Throws for a file that is not a trace, because a request without a
 * time would never arrive.
 */
export function readTrace(path: string, { blockTokens, unit }: TraceUnits): TraceLine[] {
  const lines = readNamedFile(path)
    .split('\n')
    .map((text, i) => parseTraceLine(text, { blockTokens, place: `${path}:${i + 1}` }));
  const requests = lines.filter((line) => line !== undefined);
  if (requests.length === 0) throw new Failure('invalid', `Cannot read the trace: ${path} is empty`);
  const unitMs = unit === 's' ? 1000 : 1;
  return requests
    .map((line) => ({ ...line, timestamp: line.timestamp * unitMs }))
    .sort((a, b) => a.timestamp - b.timestamp);
}

function parseTraceLine(
  text: string,
  { blockTokens, place }: { readonly blockTokens: number; readonly place: string },
): TraceLine | undefined {
  if (text.trim() === '') return undefined;
  const line = parseJson(text);
  for (const name of ['timestamp', 'input_length', 'output_length'] as const)
    if (!(Number.isFinite(line?.[name]) && line![name]! >= 0))
      throw new Failure('invalid', `Cannot read the trace: ${name} must be a number of 0 or more at ${place}`);
  const { hash_ids: ids } = line!;
  if (ids !== undefined && !(Array.isArray(ids) && ids.every(Number.isInteger)))
    throw new Failure('invalid', `Cannot read the trace: hash_ids must be whole numbers at ${place}`);
  const mistake = findBlockMistake(line as TraceLine, blockTokens);
  if (mistake !== undefined)
    throw new Failure('invalid', `Cannot read the trace: ${mistake} at ${place}; give --block-tokens`);
  return line as TraceLine;
}

function parseJson(text: string): Partial<TraceLine> | undefined {
  try {
    return JSON.parse(text) as Partial<TraceLine>;
  } catch {
    return undefined;
  }
}
