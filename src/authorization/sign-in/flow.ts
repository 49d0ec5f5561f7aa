/**
 * Where a sign-in leads, carried from page to page in hidden fields. The origin that the browser may end up at after
 * the form (see `form-action`) is sealed to the path, so that nobody but us adds one.
 */
import type { Vault } from '../../vault/vault.ts';
import { parseReturnTo } from './return-to.ts';

export interface Flow {
  readonly returnTo: string;
  readonly formActionOrigins: readonly string[];
  /** What the next page needs to know it again. */
  readonly hidden: Readonly<Record<string, string | undefined>>;
}

const HOME = '/';

export function createFlow(vault: Vault, returnTo: string, formActionOrigin?: string): Flow {
  const sealed = formActionOrigin && vault.seal(formActionOrigin, bindFlow(returnTo));
  return {
    returnTo,
    formActionOrigins: formActionOrigin ? [formActionOrigin] : [],
    hidden: {
      return_to: returnTo === HOME ? undefined : returnTo,
      form_action: sealed ? Buffer.from(sealed).toString('base64url') : undefined,
    },
  };
}

/** From the query or the form of a page; anything that leads elsewhere leads home. */
export function readFlow(vault: Vault, fields: URLSearchParams): Flow {
  const returnTo = parseReturnTo(fields.get('return_to')) ?? HOME;
  const formActionOrigin = openOrigin(vault, returnTo, fields.get('form_action'));
  return {
    returnTo,
    formActionOrigins: formActionOrigin ? [formActionOrigin] : [],
    hidden: {
      return_to: returnTo === HOME ? undefined : returnTo,
      form_action: formActionOrigin ? (fields.get('form_action') ?? undefined) : undefined,
    },
  };
}

/** The flow as a query, `''` for one that leads home. */
export function formatFlow(flow: Flow, more: Readonly<Record<string, string | undefined>> = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...flow.hidden, ...more })) if (value) query.set(name, value);
  return query.size === 0 ? '' : `?${query.toString()}`;
}

function openOrigin(vault: Vault, returnTo: string, sealed: string | null): string | undefined {
  if (!sealed) return undefined;
  try {
    return vault.open(Buffer.from(sealed, 'base64url'), bindFlow(returnTo)).toString('utf8');
  } catch {
    return undefined;
  }
}

function bindFlow(returnTo: string): string {
  return `sign-in flow:${returnTo}`;
}
