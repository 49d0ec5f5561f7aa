/** CSV as RFC 4180 writes it: a header line, commas, fields in double quotes where needed. */
import { Failure } from '../../errors.ts';
import type { RawRecord } from './field-names.ts';
import type { Line } from './lines.ts';

export interface NumberedRecord {
  readonly line: number;
  /** Undefined when the line is none. */
  readonly record: RawRecord | undefined;
  readonly problem?: string;
}

export async function* readCsvRecords(lines: AsyncIterable<Line>): AsyncGenerator<NumberedRecord> {
  let header: string[] | undefined;
  for await (const { number, text } of lines) {
    const fields = splitFields(text);
    if (header === undefined) {
      header = (fields ?? []).map((name) => name.trim().replace(/^\uFEFF/, ''));
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

function splitFields(text: string): string[] | undefined {
  if (!text.includes('"')) return text.split(',');
  const fields: string[] = [];
  const pattern = /(?:"((?:[^"]|"")*)"|([^",]*))(,|$)/y;
  for (;;) {
    const match = pattern.exec(text);
    if (match === null) return undefined;
    fields.push(match[1]?.replaceAll('""', '"') ?? match[2] ?? '');
    if (match[3] === '') return fields;
  }
}

function quote(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}
