/** Detects the format of a text by its first 64 KiB. */
import { Failure } from '../../errors.ts';
import { BENCHMARK_FORMATS, BENCHMARKS, type BenchmarkFormat } from './benchmarks/benchmarks.ts';
import { splitFields } from './csv.ts';

export const HEAD_BYTES = 65_536;

export type TextFormat = 'json' | 'csv' | BenchmarkFormat;

/** `head` is the part of the text that was read so far; `path` is for the refusal. Throws `invalid` for an unknown array. */
export function detectText(head: string, path: string): TextFormat {
  const start = head.replace(/^\uFEFF/, '').trimStart();
  const firstLine = start.split('\n', 1)[0]!;
  if (start.startsWith('[')) return detectDocument(start) ?? refuseArray(path);
  if (!start.startsWith('{')) return detectCsv(firstLine);
  const value = parseJson(firstLine);
  if (value === undefined) return detectDocument(start) ?? 'json';
  return BENCHMARK_FORMATS.find((name) => BENCHMARKS[name].matches(value)) ?? 'json';
}

/** Returns true if the format is certain: the first line is a complete object, or the header of a CSV. */
export function isDetectable(head: Uint8Array): boolean {
  const start = decodeStart(head);
  const end = start.indexOf('\n');
  if (end === -1 || start.startsWith('[')) return false;
  return !start.startsWith('{') || parseJson(start.slice(0, end)) !== undefined;
}

function decodeStart(head: Uint8Array): string {
  return new TextDecoder()
    .decode(head)
    .replace(/^\uFEFF/, '')
    .trimStart();
}

/** Detects a document that continues after the head or on further lines, by its fields and without parsing it. */
function detectDocument(start: string): BenchmarkFormat | undefined {
  return BENCHMARK_FORMATS.find((name) => BENCHMARKS[name].mark?.test(start));
}

function detectCsv(header: string): 'csv' | 'lmbench' {
  const names = splitFields(header.trimEnd()) ?? [];
  const row = Object.fromEntries(names.map((name) => [name.trim(), '']));
  return BENCHMARKS.lmbench.matches(row) ? 'lmbench' : 'csv';
}

function refuseArray(path: string): never {
  throw new Failure('invalid', `Cannot read "${path}": it is a JSON array, it must have one JSON object a line`);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
