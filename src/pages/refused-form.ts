/**
 * Carries the errors of a refused form over a redirect for visitors without a session. They are in the query, encrypted, for one
 * page, one browser and ten minutes. A password is never among the values.
 */
import type { Context } from 'hono';
import type { SecretCipher } from '../encryption/secret-cipher.ts';
import type { HttpEnv } from '../http/context.ts';
import type { World } from '../world.ts';
import type { Mistake } from './elements.ts';
import type { PageOptions } from './page-response.ts';

export interface RefusedForm extends Mistake {
  readonly status: Exclude<PageOptions['status'], 200 | undefined>;
  readonly retryAfterSeconds?: number | undefined;
  /** The values that the visitor typed. */
  readonly values?: Readonly<Record<string, string>> | undefined;
}

export interface RefusedFormDependencies {
  readonly cipher: SecretCipher;
  readonly world: Pick<World, 'nowMs'>;
}

/** The query parameter of a page that shows a refusal. */
export const REFUSED_PARAMETER = 'refused';
const LIFETIME_MS = 10 * 60_000;
/** The most characters kept of a value, so that the address stays short. */
const MAX_VALUE_LENGTH = 320;

interface Kept extends RefusedForm {
  readonly atMs: number;
}

/** Redirects with 303 to `page`, a path with its query. `browser`: a secret that only this browser sends, such as its form token. */
export function redirectRefused(
  { cipher, world }: RefusedFormDependencies,
  c: Context<HttpEnv>,
  { page, browser, refused }: { readonly page: string; readonly browser: string; readonly refused: RefusedForm },
): Response {
  const url = new URL(page, c.req.url);
  const values = Object.entries(refused.values ?? {}).map(([name, value]) => [name, value.slice(0, MAX_VALUE_LENGTH)]);
  const kept: Kept = { ...refused, values: Object.fromEntries(values), atMs: world.nowMs() };
  const ciphertext = cipher.encrypt(JSON.stringify(kept), bindTo(url.pathname, browser));
  url.searchParams.set(REFUSED_PARAMETER, Buffer.from(ciphertext).toString('base64url'));
  return c.redirect(url.pathname + url.search, 303);
}

/** Returns undefined without a refusal in the address, and for one of another page, another browser, or older than ten minutes. */
export function readRefused(
  { cipher, world }: RefusedFormDependencies,
  c: Context<HttpEnv>,
  browser: string,
): RefusedForm | undefined {
  const text = c.req.query(REFUSED_PARAMETER);
  if (text === undefined) return undefined;
  const kept = decrypt(cipher, text, bindTo(c.req.path, browser));
  if (kept === undefined || Math.abs(world.nowMs() - kept.atMs) > LIFETIME_MS) return undefined;
  if (kept.retryAfterSeconds !== undefined) c.header('Retry-After', String(kept.retryAfterSeconds));
  return kept;
}

function decrypt(cipher: SecretCipher, text: string, associatedData: string): Kept | undefined {
  try {
    return JSON.parse(cipher.decrypt(Buffer.from(text, 'base64url'), associatedData).toString('utf8')) as Kept;
  } catch {
    return undefined;
  }
}

function bindTo(path: string, browser: string): string {
  return `refused form:${path}:${browser}`;
}
