/** Declares a setting (variable, meaning, parser, default), and the parsers of its values. */
import { z } from 'zod';

/** One setting: its environment variable, its meaning, its parser and its default. */
export interface Setting<T> {
  readonly env: string;
  readonly about: string;
  /** Parses the text of a variable or the value in a file; its error messages say what is allowed. */
  readonly schema: z.ZodType<T>;
  /** The default as a person would write it; undefined when the setting is off or derived unless given. */
  readonly fallback: string | undefined;
  readonly secret?: true;
}

export const text = z.coerce.string().min(1, 'must not be empty');

export function integer(minimum: number, maximum: number): z.ZodType<number> {
  const message = `must be a whole number from ${minimum} to ${maximum}`;
  return z.coerce
    .string()
    .regex(/^-?\d+$/, message)
    .transform(Number)
    .refine((value) => value >= minimum && value <= maximum, message);
}

/**
 * Permissions of a file in octal digits, as for `chmod`. The TOML file may have the digits without quotes. `0o660` in TOML is the
 * number 432, whose digits would be other permissions; in such a misreading the owner never has read and write permission.
 */
export const fileMode: z.ZodType<number> = z
  .union([z.string(), z.number().refine(letsOwnerWrite, 'must be three octal digits in quotes, for example "660"')])
  .transform(String)
  .refine((value) => /^0?[0-7]{3}$/.test(value), 'must be three octal digits, for example 660')
  .transform((value) => Number.parseInt(value, 8));

function letsOwnerWrite(digits: number): boolean {
  return digits >= 600;
}

/** One of these words. The TOML file may have a word that is a number without quotes. */
export function choice<const T extends string>(...allowed: readonly T[]): z.ZodType<T> {
  const word = z.custom<T>((value) => allowed.includes(value as T), {
    message: `must be one of ${allowed.join(', ')}`,
  });
  return z.preprocess((value) => (typeof value === 'number' ? String(value) : value), word);
}

export const flag: z.ZodType<boolean> = z
  .union([z.boolean(), z.string()])
  .transform((value) => (typeof value === 'boolean' ? value : FLAG_WORDS.get(value.toLowerCase())))
  .refine((value): value is boolean => value !== undefined, 'must be true or false');

const FLAG_WORDS: ReadonlyMap<string, boolean> = new Map([
  ...['true', 'yes', 'on', '1'].map((word) => [word, true] as const),
  ...['false', 'no', 'off', '0'].map((word) => [word, false] as const),
]);

export const httpUrl: z.ZodType<string> = z.coerce
  .string()
  .refine(isHttpUrl, 'must be an http or https URL without query and fragment')
  .transform((value) => value.replace(/\/+$/, ''));

/** The address of a whole host: this service defines the paths below it. */
export const httpOrigin: z.ZodType<string> = httpUrl.refine(
  (value) => !URL.canParse(value) || new URL(value).pathname === '/',
  'must have no path: cookies, pages and redirects of the service start at /',
);

function isHttpUrl(value: string): boolean {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  return url !== undefined && /^https?:$/.test(url.protocol) && url.search === '' && url.hash === '';
}

/** A key of this many bytes, as base64. */
export function key(bytes: number): z.ZodType<Uint8Array> {
  return z
    .string()
    .regex(/^[A-Za-z0-9+/]+=*$/, 'must be base64')
    .transform((value) => new Uint8Array(Buffer.from(value, 'base64')))
    .refine((value) => value.length === bytes, `must be base64 of ${bytes} bytes`);
}

/** A comma-separated list, or an array in a file. */
export function list<T>(item: z.ZodType<T>): z.ZodType<readonly T[]> {
  return z.preprocess((value) => (typeof value === 'string' ? splitList(value) : value), z.array(item)).readonly();
}

function splitList(value: string): string[] {
  return value
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

/** Infers the type of one setting in the table. */
export function setting<T>(definition: Setting<T>): Setting<T> {
  return definition;
}

/** A setting that may be absent. */
export function optional<T>(definition: Omit<Setting<T>, 'fallback'>): Setting<T | undefined> {
  return { ...definition, fallback: undefined, schema: definition.schema as z.ZodType<T | undefined> };
}
