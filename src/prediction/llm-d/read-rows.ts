/**
 * Reads the rows of a body. If a row is invalid, it refuses the body with all errors of all rows. Large bodies are read in parts,
 * between which other calls are answered.
 */
import { isAscii, isUtf8 } from 'node:buffer';
import { setImmediate as yieldToCalls } from 'node:timers/promises';
import { createFaultList, type FaultList, refuseBody } from './faults.ts';
import { parseLargeBody } from './parse-large-body.ts';
import {
  isFault,
  PREDICTION_FIELDS,
  type RowField,
  type RowFields,
  type RowOf,
  TRAINING_FIELDS,
} from './row-fields.ts';

export type PredictionRow = RowOf<typeof PREDICTION_FIELDS>;
export type TrainingRow = RowOf<typeof TRAINING_FIELDS>;

/** Other predictors with this interface take this many. */
export const MAX_ROWS = 10_000;
/** About a millisecond of work. */
export const ROWS_A_TURN = 256;

/** Reads the body of `predict`. */
export async function readPredictionRow(body: Uint8Array): Promise<PredictionRow> {
  const faults = createFaultList();
  const row = readRow(await parseBody(body), PREDICTION_FIELDS, { faults, loc: ['body'] });
  faults.throwIfAny();
  return row as PredictionRow;
}

/** Reads the rows of `predict/bulk` and `predict/bulk/strict`. */
export async function readPredictionRows(body: Uint8Array): Promise<readonly PredictionRow[]> {
  return await readList(await parseBody(body), 'requests', { fields: PREDICTION_FIELDS, minimum: 1 });
}

/** Reads the rows of `add_training_data_bulk`, which may be empty. */
export async function readTrainingRows(body: Uint8Array): Promise<readonly TrainingRow[]> {
  return await readList(await parseBody(body), 'entries', { fields: TRAINING_FIELDS, minimum: 0 });
}

async function parseBody(body: Uint8Array): Promise<unknown> {
  // Joining the chunks took milliseconds for some MB in this turn of the event loop, and decoding takes as long.
  if (body.length > SMALL_BODY_CHARACTERS) await yieldToCalls();
  const value = isUtf8(body) ? await parseText(decodeText(body)) : undefined;
  if (value === undefined) throw refuseBody([{ loc: ['body'], msg: 'JSON decode error', type: 'json_invalid' }]);
  return value;
}

const decoder = new TextDecoder();

/** Most bodies are ASCII, which is decoded in a fraction of the time. */
function decodeText(body: Uint8Array): string {
  if (!isAscii(body)) return decoder.decode(body);
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('latin1');
}

/**
 * Skips the check for deep nesting, which takes about as long as parsing: V8 parses without recursion, and lists nested in a text
 * this short take little memory.
 */
const SMALL_BODY_CHARACTERS = 65_536;

/** Returns undefined if the text is not JSON. */
async function parseText(text: string): Promise<unknown> {
  if (text.length > SMALL_BODY_CHARACTERS) {
    await yieldToCalls();
    return await parseLargeBody(text, MAX_ROWS);
  }
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

interface ListRule<F extends RowFields> {
  readonly fields: F;
  readonly minimum: number;
}

async function readList<F extends RowFields>(
  value: unknown,
  name: string,
  { fields, minimum }: ListRule<F>,
): Promise<readonly RowOf<F>[]> {
  const faults = createFaultList();
  const rows = findList(value, name, faults);
  if (rows.length < minimum && faults.count === 0)
    faults.add({
      loc: ['body', name],
      msg: `List should have at least ${minimum} item after validation, not ${rows.length}`,
      type: 'too_short',
    });
  if (rows.length > MAX_ROWS)
    faults.add({
      loc: ['body', name],
      msg: `List should have at most ${MAX_ROWS} items after validation, not ${rows.length}`,
      type: 'too_long',
    });
  faults.throwIfAny();
  const read: Readonly<Record<string, unknown>>[] = [];
  for (const [index, row] of rows.entries()) {
    if (index > 0 && index % ROWS_A_TURN === 0) await yieldToCalls();
    read.push(readRow(row, fields, { faults, loc: ['body', name, index] }));
  }
  faults.throwIfAny();
  return read as readonly RowOf<F>[];
}

function findList(value: unknown, name: string, faults: FaultList): readonly unknown[] {
  if (!isObject(value)) {
    faults.add({ loc: ['body'], ...NO_OBJECT });
    return [];
  }
  const list = value[name];
  if (Array.isArray(list)) return list;
  faults.add({ loc: ['body', name], ...(list === undefined ? MISSING : NO_LIST) });
  return [];
}

const MISSING = { msg: 'Field required', type: 'missing' };
const NO_LIST = { msg: 'Input should be a valid list', type: 'list_type' };
const NO_OBJECT = {
  msg: 'Input should be a valid dictionary or object to extract fields from',
  type: 'model_attributes_type',
};

interface Place {
  readonly faults: FaultList;
  readonly loc: readonly (string | number)[];
}

type Entry = readonly [key: string, field: RowField<number> | RowField<string>];
const ENTRIES = new Map<RowFields, readonly Entry[]>(
  [PREDICTION_FIELDS, TRAINING_FIELDS].map((fields) => [fields, Object.entries(fields)]),
);

/** Reads the valid fields of a row, and records an error for each other one. */
function readRow(value: unknown, fields: RowFields, { faults, loc }: Place): Readonly<Record<string, unknown>> {
  const row: Record<string, number | string> = {};
  if (!isObject(value)) {
    faults.add({ loc, ...NO_OBJECT });
    return row;
  }
  for (const [key, { name, absent, read }] of ENTRIES.get(fields)!) {
    const given = value[name];
    const found = given === undefined ? (absent ?? MISSING) : read(given);
    if (isFault(found)) faults.add({ loc: [...loc, name], ...found });
    else row[key] = found;
  }
  return row;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
