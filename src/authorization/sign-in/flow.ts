/**
 * Where a sign-in leads, carried from page to page in hidden fields. That the browser may end up at a client after the
 * form (see `form-action`) is sealed to the path, so that only this service can say it.
 */
import type { Vault } from '../../vault/vault.ts';
import { parseReturnTo } from './return-to.ts';

export interface Flow {
  readonly returnTo: string;
  /** The redirects after the form can end at a client. */
  readonly leadsToClient: boolean;
  /** What the next page needs to know it again. */
  readonly hidden: Readonly<Record<string, string | undefined>>;
}

const HOME = '/';
const CLIENT = 'client';

/** What cannot be a way back, such as a path that is too long, leads home. */
export function createFlow(vault: Vault, path: string, leadsToClient = false): Flow {
  const returnTo = parseReturnTo(path) ?? HOME;
  const sealed = leadsToClient ? Buffer.from(vault.seal(CLIENT, bindFlow(returnTo))).toString('base64url') : undefined;
  return toFlow(returnTo, sealed);
}

/** From the query or the form of a page; anything that leads elsewhere leads home. */
export function readFlow(vault: Vault, fields: URLSearchParams): Flow {
  const returnTo = parseReturnTo(fields.get('return_to')) ?? HOME;
  const sealed = fields.get('to_client') ?? undefined;
  return toFlow(returnTo, sealed !== undefined && isSealed(vault, returnTo, sealed) ? sealed : undefined);
}

function toFlow(returnTo: string, sealed: string | undefined): Flow {
  return {
    returnTo,
    leadsToClient: sealed !== undefined,
    hidden: { return_to: returnTo === HOME ? undefined : returnTo, to_client: sealed },
  };
}

/** The flow as a query; `''` when it leads home. */
export function formatFlow(flow: Flow, more: Readonly<Record<string, string | undefined>> = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...flow.hidden, ...more })) if (value) query.set(name, value);
  return query.size === 0 ? '' : `?${query.toString()}`;
}

function isSealed(vault: Vault, returnTo: string, sealed: string): boolean {
  try {
    return vault.open(Buffer.from(sealed, 'base64url'), bindFlow(returnTo)).toString('utf8') === CLIENT;
  } catch {
    return false;
  }
}

function bindFlow(returnTo: string): string {
  return `sign-in flow:${returnTo}`;
}
