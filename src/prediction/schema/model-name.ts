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

const MAX_NAME_LENGTH = 200;

/** Throws unless this may name a target model. An `@` would make ids ambiguous; with invisible characters two names look alike. */
export function checkModelName(name: string): void {
  if (name.length > 0 && name.length <= MAX_NAME_LENGTH && !/[@\p{C}\p{Zl}\p{Zp}]|^\s|\s$/u.test(name)) return;
  throw new Failure(
    'invalid',
    `Cannot use this model name: it must be 1 to ${MAX_NAME_LENGTH} characters, letters, digits, punctuation and spaces within, but no "@" and no control character, got ${JSON.stringify(name)}`,
  );
}
