import { Failure } from '../errors.ts';

/** `qwen3-32b@17`: what an answer says it came from. */
export function formatModelId(name: string, version: number): string {
  return `${name}@${version}`;
}

const MAX_NAME_LENGTH = 200;

/** Throws unless this may name a target model. An `@` would make ids ambiguous, a control character logs. */
export function checkModelName(name: string): void {
  if (name.length === 0 || name.length > MAX_NAME_LENGTH || /[@\p{Cc}]/u.test(name))
    throw new Failure(
      'invalid',
      `Cannot use this model name: it must be 1 to ${MAX_NAME_LENGTH} characters without "@", got ${JSON.stringify(name)}`,
    );
}
