/** Checks names of models, and formats the id of a version (`qwen3-32b@17`). */
import { Failure } from '../../errors.ts';

/** Returns the id of a version as answers have it, such as `qwen3-32b@17`. */
export function formatModelId(name: string, version: number): string {
  return `${name}@${version}`;
}

/** Returns the version in the id of a model with this name; 0 for another id, such as that of the prior. */
export function readModelVersion(id: string, name: string): number {
  return id.startsWith(name) && id[name.length] === '@' ? Number(id.slice(name.length + 1)) : 0;
}

/** The longest name in bytes, also in reports. */
export const MAX_MODEL_NAME_BYTES = 256;
const MAX_VERSION_DIGITS = 15;
/** The longest id of a version in bytes. */
export const MAX_MODEL_ID_BYTES = MAX_MODEL_NAME_BYTES + 1 + MAX_VERSION_DIGITS;

const MODEL_ID = new RegExp(`^(.+)@([1-9]\\d{0,${MAX_VERSION_DIGITS - 1}})$`, 's');

export interface ParsedModelId {
  readonly name: string;
  /** Undefined for a name alone. */
  readonly version: number | undefined;
}

/** Parses a name, or name@version. The name may contain an `@`, as in `text-bison@001`: only a version after the last one counts. */
export function parseModelId(id: string): ParsedModelId {
  const [, name = id, version] = MODEL_ID.exec(id) ?? [];
  return { name, version: version === undefined ? undefined : Number(version) };
}

/** Throws unless this is a valid name of a target model. Invisible characters are refused, since two names could look alike. */
export function checkModelName(name: string): void {
  const length = Buffer.byteLength(name);
  if (length > 0 && length <= MAX_MODEL_NAME_BYTES && !/[\p{C}\p{Zl}\p{Zp}]|^\s|\s$/u.test(name)) return;
  throw new Failure(
    'invalid',
    `Cannot use this model name: it must be 1 to ${MAX_MODEL_NAME_BYTES} bytes, letters, digits, punctuation and spaces within, but no control character, got ${JSON.stringify(name)}`,
  );
}
