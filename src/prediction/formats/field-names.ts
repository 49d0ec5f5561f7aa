/** Maps the field names of a record to ours. A record has the names of the proto file, of its JSON, or of llm-d's training rows. */
import { METRIC_FIELDS } from '../schema/columns.ts';

export type FieldNames = 'trivet' | 'llm-d';
export type RawRecord = Readonly<Record<string, unknown>>;

const OWN_FIELDS = [
  'target_model',
  'at',
  'timestamp',
  'ttft_millis',
  'tpot_millis',
  'pod_type',
  'server_ip',
  ...METRIC_FIELDS,
];
/** Further fields of our messages, which are not reported as ignored. */
const TOLERATED_FIELDS = ['input_id', 'request_id', 'output_tokens'];
/** Fields with another name in llm-d's training rows: our name → llm-d's. Where there are several, ours is their sum. */
const LLM_D_NAMES: ReadonlyMap<string, readonly string[]> = new Map([
  ['ttft_millis', ['actual_ttft_ms']],
  ['tpot_millis', ['actual_tpot_ms']],
  ['kv_cache_usage', ['kv_cache_percentage']],
  ['inflight_tokens', ['prefill_tokens_in_flight', 'decode_tokens_in_flight']],
]);
const FIELDS: Readonly<Record<FieldNames, ReadonlySet<string>>> = {
  trivet: new Set([...OWN_FIELDS, ...TOLERATED_FIELDS]),
  'llm-d': new Set([...OWN_FIELDS.flatMap((name) => LLM_D_NAMES.get(name) ?? [name]), ...TOLERATED_FIELDS]),
};

/** The fields that a row may have, under our names. */
export const KNOWN_FIELDS: readonly string[] = OWN_FIELDS;

/** Names in the JSON of our messages → ours, such as `inputTokenLength` → `input_token_length`. */
const OWN_NAME_OF_CAMEL = new Map(
  [...OWN_FIELDS, ...TOLERATED_FIELDS]
    .map((name) => [name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()), name] as const)
    .filter(([camel, name]) => camel !== name),
);

/** The field of ReportBatch that holds a whole observation. */
const OBSERVATION_FIELD = 'observation';

/** Returns true if a field is used, whichever names the row has. */
export function isKnownField(name: string): boolean {
  const isOfRow = FIELDS.trivet.has(name) || FIELDS['llm-d'].has(name) || OWN_NAME_OF_CAMEL.has(name);
  return isOfRow || name === OBSERVATION_FIELD;
}

/** Returns the names of one of our fields in a record with these names. */
export function listGivenNames(ownName: string, names: FieldNames): readonly string[] {
  return (names === 'llm-d' ? LLM_D_NAMES.get(ownName) : undefined) ?? [ownName];
}

/** Replaces the names of our fields in a text with those of the record. */
export function renameFields(text: string, names: FieldNames): string {
  if (names === 'trivet') return text;
  let renamed = text;
  for (const [ownName, given] of LLM_D_NAMES) renamed = renamed.replaceAll(ownName, given.join(' + '));
  return renamed;
}

/** Flattens a whole observation of ReportBatch, or an input of Predict, to a row with our names. */
export function toOwnNames(record: RawRecord): RawRecord {
  const observation = record[OBSERVATION_FIELD];
  const flat = isRecord(observation) ? flattenObservation(observation) : record;
  if (!Object.keys(flat).some((name) => OWN_NAME_OF_CAMEL.has(name))) return flat;
  return Object.fromEntries(Object.entries(flat).map(([name, value]) => [OWN_NAME_OF_CAMEL.get(name) ?? name, value]));
}

function flattenObservation({ input, ...rest }: RawRecord): RawRecord {
  return isRecord(input) ? { ...input, ...rest } : rest;
}

function isRecord(value: unknown): value is RawRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Lists the fields of a record that are not used: misspelt, or from another tool. */
export function listIgnoredFields(record: RawRecord, names = detectFieldNames(record)): string[] {
  return Object.keys(record).filter((name) => !FIELDS[names].has(name));
}

/** Returns false if the record has no field of an input: its names are others, or it is not a candidate. */
export function hasInputFields(record: RawRecord): boolean {
  const names = FIELDS[detectFieldNames(record)];
  return Object.keys(record).some((name) => names.has(name) && !NOT_OF_INPUT.has(name));
}

const NOT_OF_INPUT = new Set(['at', 'timestamp', 'target_model', 'ttft_millis', 'tpot_millis', ...TOLERATED_FIELDS]);

/** A record with one of these names is from llm-d. The counts of tokens in flight alone do not decide. */
const NAMES_OF_LLM_D_ALONE = ['ttft_millis', 'tpot_millis', 'kv_cache_usage'].flatMap((name) => LLM_D_NAMES.get(name)!);

export function detectFieldNames(record: RawRecord): FieldNames {
  return NAMES_OF_LLM_D_ALONE.some((name) => name in record) ? 'llm-d' : 'trivet';
}
