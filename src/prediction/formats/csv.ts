/** Parses CSV (RFC 4180) with a header line. */
import { Failure } from '../../errors.ts';
import type { RawRecord } from './field-names.ts';
import type { Line } from './lines.ts';

export interface NumberedRecord {
  readonly line: number;
  /** Undefined when the line is not a record. */
  readonly record: RawRecord | undefined;
  readonly problem?: string;
  /** The position of the record in the file, where the line number does not identify it. */
  readonly place?: string;
}

/** The largest number of columns: more than any source of observations has. */
export const MAX_COLUMNS = 1000;

export async function* readCsvRecords(lines: AsyncIterable<Line>): AsyncGenerator<NumberedRecord> {
  let header: string[] | undefined;
  for await (const { number, text } of lines) {
    const fields = splitFields(text);
    if (header === undefined) {
      header = (fields ?? []).map((name) => name.trim().replace(/^\uFEFF/, ''));
      if (header.length > MAX_COLUMNS)
        throw new Failure(
          'invalid',
          `Cannot read CSV: the header must have at most ${MAX_COLUMNS} names, got ${header.length}`,
        );
      if (header.length < 2)
        throw new Failure(
          'invalid',
          `Cannot read CSV: line ${number} must be a header, names with commas between them, got ${quote(text)}`,
        );
      continue;
    }
    if (fields === undefined) yield { line: number, record: undefined, problem: 'a quoted field has no end' };
    else if (fields.length !== header.length)
      yield {
        line: number,
        record: undefined,
        problem: `a row must have as many fields as the header, ${header.length}`,
      };
    else yield { line: number, record: Object.fromEntries(header.map((name, i) => [name, fields[i]])) };
  }
}

/** Returns undefined when a quoted field has no closing quote, or text after it. */
export function splitFields(text: string): string[] | undefined {
  if (!text.includes('"')) return text.split(',');
  const fields: string[] = [];
  for (let at = 0; ; at++) {
    const isQuoted = text[at] === '"';
    const end = isQuoted ? findClosingQuote(text, at + 1) : at;
    const next = text.indexOf(',', end);
    const stop = next === -1 ? text.length : next;
    const field = isQuoted ? text.slice(at + 1, end) : text.slice(at, stop);
    if (isQuoted ? end === -1 || end + 1 !== stop : field.includes('"')) return undefined;
    fields.push(isQuoted ? field.replaceAll('""', '"') : field);
    if (stop === text.length) return fields;
    at = stop;
  }
}

/** Returns -1 without a closing quote. Two quotes in a row are an escaped quote. */
function findClosingQuote(text: string, from: number): number {
  let at = text.indexOf('"', from);
  while (at !== -1 && text[at + 1] === '"') at = text.indexOf('"', at + 2);
  return at;
}

function quote(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}
