/** Reads the rows of a benchmark's file, from a JSON document, JSON lines or CSV. */
import { Failure } from '../../errors.ts';
import { isNestedDeeperThan } from '../../http/parser-limits.ts';
import { BENCHMARKS, type BenchmarkFormat } from './benchmarks/benchmarks.ts';
import { type NumberedRecord, readCsvRecords } from './csv.ts';
import { readLines } from './lines.ts';

export interface BenchmarkOptions {
  readonly format: BenchmarkFormat;
  /** The file, whose path also names the run. */
  readonly path: string;
  /** The value of `--server`. */
  readonly server: string | undefined;
}

/** A document is parsed as a whole, which takes several times its length in memory. */
const MAX_DOCUMENT_BYTES = 268_435_456;
const MAX_DEPTH = 64;

export async function* readBenchmark(
  chunks: AsyncIterable<Uint8Array>,
  { format, path, server = '' }: BenchmarkOptions,
): AsyncGenerator<NumberedRecord> {
  const benchmark = BENCHMARKS[format];
  if (server === '' && !benchmark.namesServers)
    throw new Failure('invalid', `Cannot read ${format}: --server must name the server that was measured`);
  const context = { run: path, server };
  switch (benchmark.shape) {
    case 'document':
      for (const [i, value] of parseDocuments(await readText(chunks, format), format).entries()) {
        if (!benchmark.matches(value)) throw new Failure('invalid', `Cannot read "${path}": it is not ${format}`);
        yield* benchmark.read(value, { ...context, run: i === 0 ? path : `${path}#${i + 1}`, line: 1 });
      }
      return;
    case 'lines':
      for await (const { number: line, text } of readLines(chunks)) {
        const value = parseJson(text);
        if (benchmark.matches(value)) yield* benchmark.read(value, { ...context, line });
        else yield { line, record: undefined, problem: `the line must be JSON as ${format} writes it` };
      }
      return;
    case 'csv':
      for await (const row of readCsvRecords(readLines(chunks)))
        if (row.record === undefined) yield row;
        else yield* benchmark.read(row.record, { ...context, line: row.line });
  }
}

async function readText(chunks: AsyncIterable<Uint8Array>, format: string): Promise<string> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    length += chunk.length;
    if (length > MAX_DOCUMENT_BYTES)
      throw new Failure('invalid', `Cannot read ${format}: a file must be at most 256 MiB; write several`);
    parts.push(chunk);
  }
  return new TextDecoder().decode(Buffer.concat(parts));
}

/** Parses one document, or several on separate lines, as `--append-result` writes them. */
function parseDocuments(text: string, format: string): unknown[] {
  const whole = parseJson(text);
  if (whole !== undefined) return [whole];
  const documents = text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map(parseJson);
  if (documents.length > 1 && !documents.includes(undefined)) return documents;
  throw new Failure(
    'invalid',
    `Cannot read ${format}: the file must be JSON, nested at most ${MAX_DEPTH} levels; was it cut off?`,
  );
}

/** Returns undefined if the text is not JSON, or is nested so deeply that parsing could take any amount of memory. */
function parseJson(text: string): unknown {
  if (isNestedDeeperThan(text, MAX_DEPTH)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
