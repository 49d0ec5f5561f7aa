/** One record of any source, by the field names it carries: ours, or those of llm-d's training rows. */

import { findTextFault } from '../../database/storable-text.ts';
import { fillMetrics, type MetricName } from '../schema/input-fields.ts';
import { findInputMistake, findMistake, type Observation } from '../schema/observation.ts';
import type { ObservedInput } from '../schema/observation-event.ts';
import { detectFieldNames, type FieldNames, type RawRecord } from './field-names.ts';

/** A usable row, or the reason why it cannot be used. */
export type ParsedRecord = { readonly observation: Observation } | { readonly refusal: string };

/** `targetModel` stands in where the record names none. */
export function parseRecord(record: RawRecord, names: FieldNames | undefined, targetModel: string): ParsedRecord {
  const llmD = (names ?? detectFieldNames(record)) === 'llm-d';
  const { number, text, problems } = openFields(record);
  const observation: Observation = {
    targetModel: text('target_model') || targetModel,
    input: parseInput({ number, text }, llmD),
    atMs: parseAt(record.at ?? record.timestamp, problems),
    ttftMs: llmD ? presentTime(number('actual_ttft_ms')) : number('ttft_millis'),
    tpotMs: llmD ? presentTime(number('actual_tpot_ms')) : number('tpot_millis'),
    outputTokens: number('output_tokens'),
  };
  const mistake = problems[0] ?? findMistake(observation) ?? findMissing(record);
  return mistake === undefined ? { observation } : { refusal: llmD ? toLlmDWords(mistake) : mistake };
}

/** A row says how long its prompt was; when it does not, the name is most likely misspelt, and 0 would teach nonsense. */
function findMissing(record: RawRecord): string | undefined {
  return record.input_token_length === undefined ? 'input_token_length must be present' : undefined;
}

/** A candidate alone, without times. */
export function parseInputRecord(
  record: RawRecord,
  names: FieldNames,
): { readonly input: ObservedInput } | { readonly refusal: string } {
  const { number, text, problems } = openFields(record);
  const input = parseInput({ number, text }, names === 'llm-d');
  const mistake = problems[0] ?? findInputMistake(input);
  return mistake === undefined ? { input } : { refusal: names === 'llm-d' ? toLlmDWords(mistake) : mistake };
}

interface Fields {
  readonly number: (name: string) => number | undefined;
  readonly text: (name: string) => string;
  /** A text, or a number that serves as one. */
  readonly name: (name: string) => string;
}

/** Typed access to a record; what is of another type becomes a problem. */
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

function parseInput({ number, text }: Pick<Fields, 'number' | 'text'>, llmD: boolean): ObservedInput {
  const read = (name: MetricName): number | undefined => {
    if (!llmD) return number(name);
    if (name === 'kv_cache_usage') return number('kv_cache_percentage');
    if (name !== 'inflight_tokens') return number(name);
    return (number('prefill_tokens_in_flight') ?? 0) + (number('decode_tokens_in_flight') ?? 0);
  };
  return {
    podType: text('pod_type'),
    ...fillMetrics(({ name }) => read(name) ?? 0),
    serverIp: text('server_ip'),
  };
}

/** llm-d writes 0 for a time that was not observed. */
function presentTime(value: number | undefined): number | undefined {
  return value === 0 ? undefined : value;
}

/** Undefined when absent, NaN when it is no number. Texts come from CSV, big integers from Parquet. */
function toNumber(value: unknown): number | undefined {
  if (value === undefined || value === null || value === '') return undefined;
  if (typeof value === 'number') return value;
  if (typeof value === 'bigint') return Number(value);
  return typeof value === 'string' && value.trim() !== '' ? Number(value) : Number.NaN;
}

/** As seconds since the epoch this is 2001, as milliseconds 12 January 1970: smaller numbers count from another start. */
const FIRST_SECOND = 1e9;
/** Numbers from `FIRST_SECOND` to this are seconds, as some exporters write: as milliseconds it would still be 1973. */
const FIRST_MILLISECOND = 1e11;

function parseAt(value: unknown, problems: string[]): number | undefined {
  if (value === undefined || value === null || value === '') return undefined;
  if (value instanceof Date) return value.getTime();
  const number = toNumber(value);
  if (Number.isNaN(number) && typeof value === 'string') return parseTime(value, problems);
  if (number! >= FIRST_SECOND && number! <= MAX_TIME_MS) return number! < FIRST_MILLISECOND ? number! * 1000 : number!;
  problems.push(
    'at must count from 1 January 1970, as milliseconds or seconds after 2001; a start of its own is not known',
  );
  return undefined;
}

/** The latest time that a `Date` can name. */
const MAX_TIME_MS = 8.64e15;

function parseTime(text: string, problems: string[]): number | undefined {
  const atMs = Date.parse(text);
  if (atMs >= 0) return atMs;
  problems.push('at must be an ISO 8601 time or milliseconds since the epoch');
  return undefined;
}

function toLlmDWords(mistake: string): string {
  return mistake
    .replaceAll('ttft_millis', 'actual_ttft_ms')
    .replaceAll('tpot_millis', 'actual_tpot_ms')
    .replaceAll('kv_cache_usage', 'kv_cache_percentage')
    .replaceAll('inflight_tokens', 'prefill_tokens_in_flight + decode_tokens_in_flight');
}
