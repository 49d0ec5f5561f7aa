/** Reads scalars by the JSON mapping of proto3: https://protobuf.dev/programming-guides/json/. */
import { Failure } from '../../errors.ts';

/** The members of a message; null and absent mean all defaults. */
export function readJsonObject(value: unknown, name: string): Readonly<Record<string, unknown>> {
  if (value === null || value === undefined) return {};
  if (typeof value !== 'object' || Array.isArray(value)) throw refuse(name, 'an object', value);
  return value as Record<string, unknown>;
}

export function readJsonArray(value: unknown, name: string): readonly unknown[] {
  if (value === null || value === undefined) return [];
  if (!Array.isArray(value)) throw refuse(name, 'an array', value);
  return value;
}

export function readJsonString(value: unknown, name: string): string {
  if (value === null || value === undefined) return '';
  if (typeof value !== 'string' || !value.isWellFormed()) throw refuse(name, 'a string', value);
  return value;
}

/** A number or its text, without a fraction, within 32 bits. */
export function readJsonInt32(value: unknown, name: string): number {
  const number = readJsonNumber(value);
  if (number === undefined || !Number.isInteger(number) || number !== (number | 0))
    throw refuse(name, 'a whole number of 32 bits', value);
  return number;
}

/** A number or its text, among them "NaN", "Infinity" and "-Infinity". */
export function readJsonDouble(value: unknown, name: string): number {
  if (value === 'NaN') return Number.NaN;
  if (value === 'Infinity') return Number.POSITIVE_INFINITY;
  if (value === '-Infinity') return Number.NEGATIVE_INFINITY;
  const number = readJsonNumber(value);
  if (number === undefined || !Number.isFinite(number)) throw refuse(name, 'a number', value);
  return number;
}

/** Writes numbers that JSON does not have (NaN, infinity) as text. */
export function toJsonDouble(value: number): number | string {
  return Number.isFinite(value) ? value : String(value);
}

/** `input_token_length` and `inputTokenLength` are the same field. */
export function toCamelCase(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

export function refuseUnknownField(name: string): never {
  throw new Failure('invalid', `Cannot read the message: there is no field ${JSON.stringify(name)}`, { field: name });
}

function readJsonNumber(value: unknown): number | undefined {
  if (value === null || value === undefined) return 0;
  if (typeof value === 'number') return value;
  return typeof value === 'string' && /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(value) ? Number(value) : undefined;
}

function refuse(name: string, wanted: string, value: unknown): Failure {
  const shown = typeof value === 'number' ? String(value) : (JSON.stringify(value) ?? 'undefined');
  const got = shown.length > 100 ? `${shown.slice(0, 100).toWellFormed()}…` : shown;
  return new Failure('invalid', `Cannot read the message: ${name} must be ${wanted}, got ${got}`, { field: name });
}
