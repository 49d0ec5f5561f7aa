/** Parses one record of any source into an observation, and names what is wrong with it. */

import { findTextFault } from '../../database/storable-text.ts';
import { findTpot } from '../schema/answer-certainty.ts';
import { fillMetrics } from '../schema/input-fields.ts';
import { readIsoTime } from '../schema/iso-time.ts';
import { findInputMistake, findMistake, type Observation } from '../schema/observation.ts';
import type { ObservedInput } from '../schema/observation-event.ts';
import { detectFieldNames, type FieldNames, listGivenNames, type RawRecord, renameFields } from './field-names.ts';

/** A usable row, or the reason why it cannot be used. */
export type ParsedRecord = { readonly observation: Observation } | { readonly refusal: string };

/** A row of a file, or why it cannot be used. */
export type ReadRow = RowPlace & ParsedRecord;

export interface RowPlace {
  readonly line: number;
  /** The position of the row in the file, where the line number does not identify it. */
  readonly place?: string;
}

/** `targetModel` is for a record that does not name one. */
export function parseRecord(record: RawRecord, names: FieldNames | undefined, targetModel: string): ParsedRecord {
  const given = names ?? detectFieldNames(record);
  const { number, text, problems } = openFields(record);
  const outputTokens = number('output_tokens');
  const observation: Observation = {
    targetModel: text('target_model') || targetModel,
    input: parseInput({ number, text }, given),
    atMs: parseAt(record.at ?? record.timestamp, problems),
    ttftMs: parseDuration(number, 'ttft_millis', given),
    tpotMs: findTpot(parseDuration(number, 'tpot_millis', given), outputTokens),
    outputTokens,
  };
  const mistake = problems[0] ?? findMistake(observation) ?? findMissing(record);
  return mistake === undefined ? { observation } : { refusal: renameFields(mistake, given) };
}

/** Requires the prompt length: without it, its name is most likely misspelt, and the model would learn from 0. */
function findMissing(record: RawRecord): string | undefined {
  return isAbsent(record.input_token_length) ? 'input_token_length must be present' : undefined;
}

/** Parses a candidate, which has no times. */
export function parseInputRecord(
  record: RawRecord,
  names: FieldNames,
): { readonly input: ObservedInput } | { readonly refusal: string } {
  const { number, text, problems } = openFields(record);
  const input = parseInput({ number, text }, names);
  const mistake = problems[0] ?? findInputMistake(input);
  return mistake === undefined ? { input } : { refusal: renameFields(mistake, names) };
}

interface Fields {
  readonly number: (name: string) => number | undefined;
  readonly text: (name: string) => string;
  /** Returns a text, or a number as text. */
  readonly name: (name: string) => string;
}

/** Gives typed access to a record; values of another type become problems. */
export function openFields(record: RawRecord): Fields & { readonly problems: string[] } {
  const problems: string[] = [];
  function text(name: string): string {
    const value = record[name];
    if (value === undefined || value === null) return '';
    const fault = typeof value === 'string' ? findTextFault(value) : 'must be a string';
    if (fault === undefined) return value as string;
    problems.push(`${name} ${fault}`);
    return '';
  }
  return {
    problems,
    text,
    name: (name) => (isNumeric(record[name]) ? String(record[name]) : text(name)),
    number(name) {
      const value = toNumber(record[name]);
      if (value === undefined || !Number.isNaN(value)) return value;
      problems.push(`${name} must be a number`);
      return undefined;
    },
  };
}

function isNumeric(value: unknown): value is number | bigint {
  return typeof value === 'number' || typeof value === 'bigint';
}

function parseInput({ number, text }: Pick<Fields, 'number' | 'text'>, names: FieldNames): ObservedInput {
  return {
    podType: text('pod_type'),
    ...fillMetrics(({ name }) => sum(listGivenNames(name, names).map((given) => number(given) ?? 0))),
    serverIp: text('server_ip'),
  };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** Returns undefined for a time that was not observed, for which llm-d writes 0. */
function parseDuration(
  number: Fields['number'],
  name: 'ttft_millis' | 'tpot_millis',
  names: FieldNames,
): number | undefined {
  const [given = name] = listGivenNames(name, names);
  const value = number(given);
  return names === 'llm-d' && value === 0 ? undefined : value;
}

/** Returns true for a missing value: null in JSON and Parquet, an empty text in CSV. */
function isAbsent(value: unknown): value is undefined | null | '' {
  return value === undefined || value === null || value === '';
}

/** Returns undefined when absent, NaN when not a number. Texts come from CSV, big integers from Parquet. */
function toNumber(value: unknown): number | undefined {
  if (isAbsent(value)) return undefined;
  if (typeof value === 'number') return value;
  if (typeof value === 'bigint') return Number(value);
  return typeof value === 'string' && value.trim() !== '' ? Number(value) : Number.NaN;
}

/** In seconds, this is in 2001; in milliseconds, 12 January 1970. Smaller numbers do not count from the epoch. */
const FIRST_SECOND = 1e9;
/** Numbers from `FIRST_SECOND` to this are seconds, which some exporters write: in milliseconds, this is in 1973. */
const FIRST_MILLISECOND = 1e11;

function parseAt(value: unknown, problems: string[]): number | undefined {
  if (isAbsent(value)) return undefined;
  if (value instanceof Date) return checkTime(value.getTime(), problems);
  const number = toNumber(value);
  if (Number.isNaN(number) && typeof value === 'string') return checkTime(readIsoTime(value.trim()), problems);
  if (number! >= FIRST_SECOND && number! <= MAX_TIME_MS) return number! < FIRST_MILLISECOND ? number! * 1000 : number!;
  problems.push('at must count from 1 January 1970, as milliseconds or seconds after 2001; other clocks are refused');
  return undefined;
}

/** The latest time that a `Date` can hold. */
const MAX_TIME_MS = 8.64e15;

function checkTime(atMs: number, problems: string[]): number | undefined {
  if (atMs >= 0) return atMs;
  problems.push('at must be an ISO 8601 time or milliseconds since the epoch');
  return undefined;
}
