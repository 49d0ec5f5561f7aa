/** Checks names of models, and formats the id of a version (`qwen3-32b@17`). */
import { Failure } from '../../errors.ts';

/** `qwen3-32b@17`: the id of the version that predicted, as it is in an answer. */
export function formatModelId(name: string, version: number): string {
  return `${name}@${version}`;
}

/** The version in the id of a model with this name; 0 for another id, as the prior has. */
export function readModelVersion(id: string, name: string): number {
  return id.startsWith(name) && id[name.length] === '@' ? Number(id.slice(name.length + 1)) : 0;
}

/** The longest name in bytes, that of reports too. */
export const MAX_MODEL_NAME_BYTES = 256;
const MAX_VERSION_DIGITS = 15;
/** The longest id of a version. */
export const MAX_MODEL_ID_BYTES = MAX_MODEL_NAME_BYTES + 1 + MAX_VERSION_DIGITS;

const MODEL_ID = new RegExp(`^(.+)@([1-9]\\d{0,${MAX_VERSION_DIGITS - 1}})$`, 's');

export interface ParsedModelId {
  readonly name: string;
  /** Undefined for a name alone. */
  readonly version: number | undefined;
}

/** Reads a name, or name@version. The name may have an `@` itself, as `text-bison@001`: the last one with a number behind it counts. */
export function parseModelId(id: string): ParsedModelId {
  const [, name = id, version] = MODEL_ID.exec(id) ?? [];
  return { name, version: version === undefined ? undefined : Number(version) };
}

/** Throws unless this may name a target model. With invisible characters two names look alike. */
export function checkModelName(name: string): void {
  const length = Buffer.byteLength(name);
  if (length > 0 && length <= MAX_MODEL_NAME_BYTES && !/[\p{C}\p{Zl}\p{Zp}]|^\s|\s$/u.test(name)) return;
  throw new Failure(
    'invalid',
    `Cannot use this model name: it must be 1 to ${MAX_MODEL_NAME_BYTES} bytes, letters, digits, punctuation and spaces within, but no control character, got ${JSON.stringify(name)}`,
  );
}
