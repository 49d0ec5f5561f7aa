/** Reads a recorded trace of requests for `trivet simulate`. */
import { readNamedFile } from '../../command-line/output.ts';
import { Failure } from '../../errors.ts';
import type { TraceLine } from '../simulator/workload.ts';

/** Throws for a file that is no trace: a request without a time would never arrive. In the order of time. */
export function readTrace(path: string): TraceLine[] {
  const lines = readNamedFile(path)
    .split('\n')
    .map((text, i) => parseTraceLine(text, `${path}:${i + 1}`));
  const requests = lines.filter((line) => line !== undefined);
  if (requests.length === 0) throw new Failure('invalid', `Cannot read the trace: ${path} is empty`);
  return requests.sort((a, b) => a.timestamp - b.timestamp);
}

function parseTraceLine(text: string, place: string): TraceLine | undefined {
  if (text.trim() === '') return undefined;
  const line = parseJson(text);
  for (const name of ['timestamp', 'input_length', 'output_length'] as const)
    if (!(Number.isFinite(line?.[name]) && line![name]! >= 0))
      throw new Failure('invalid', `Cannot read the trace: ${name} must be a number of 0 or more at ${place}`);
  const { hash_ids: ids } = line!;
  if (ids !== undefined && !(Array.isArray(ids) && ids.every(Number.isInteger)))
    throw new Failure('invalid', `Cannot read the trace: hash_ids must be whole numbers at ${place}`);
  return line as TraceLine;
}

function parseJson(text: string): Partial<TraceLine> | undefined {
  try {
    return JSON.parse(text) as Partial<TraceLine>;
  } catch {
    return undefined;
  }
}
