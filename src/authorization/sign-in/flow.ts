/**
 * Carries the path to open after a sign-in from page to page, in a hidden field (`return_to`). Another field (`to_client`) permits
 * redirects to a client after the form (`form-action` of the Content-Security-Policy). It is encrypted with the path as associated
 * data, so only this service can make it.
 */
import type { SecretCipher } from '../../encryption/secret-cipher.ts';
import { parseReturnTo } from './return-to.ts';

export interface Flow {
  readonly returnTo: string;
  /** Whether the redirects after the form may end at a client. */
  readonly leadsToClient: boolean;
  /** Why the page to return to refuses the present session. */
  readonly again: Again | undefined;
  /** The hidden fields with which the next page continues the flow. */
  readonly hidden: Readonly<Record<string, string | undefined>>;
}

const HOME = '/';
const AUTHORIZATION = '/oauth/authorize?';
const CLIENT = 'client';
const NOT = 'not-';

/**
 * Why the page to return to refuses the present session, as a hidden field. `yes`: the person has to sign in again. `same`: the
 * person has to sign in again, and the application expects no one else. `not-` and the id of a person: it expects someone else.
 */
export type Again = 'yes' | 'same' | `${typeof NOT}${string}`;

/** The value of `done` that makes the sign-in page say that a form was not accepted because its session had ended. */
export const SESSION_ENDED = 'session_ended';

export interface FlowOptions {
  readonly leadsToClient?: boolean | undefined;
  readonly again?: Again | undefined;
}

/** Creates a flow to this path, or to the first page if the path cannot be returned to, for example because it is too long. */
export function createFlow(
  cipher: SecretCipher,
  path: string,
  { leadsToClient = false, again }: FlowOptions = {},
): Flow {
  const returnTo = parseReturnTo(path) ?? HOME;
  return toFlow(returnTo, { toClient: leadsToClient ? encryptPermission(cipher, returnTo) : undefined, again });
}

export function refusePerson(userId: string): Again {
  return `${NOT}${userId}`;
}

/** Reads the flow from the query or the form of a page. A path outside this service is replaced by the first page. */
export function readFlow(cipher: SecretCipher, fields: URLSearchParams): Flow {
  const returnTo = parseReturnTo(fields.get('return_to')) ?? HOME;
  const toClient = fields.get('to_client') ?? undefined;
  const isPermitted = toClient !== undefined && isFromService(cipher, returnTo, toClient);
  return toFlow(returnTo, { toClient: isPermitted ? toClient : undefined, again: parseAgain(fields.get('again')) });
}

function parseAgain(text: string | null): Again | undefined {
  if (text === 'yes' || text === 'same') return text;
  return text !== null && /^not-[\w-]{1,64}$/.test(text) ? (text as Again) : undefined;
}

/** Returns why the sign-in page asks a signed-in person to sign in; undefined if the session may be enough. */
export function explainRefusal({ again }: Pick<Flow, 'again'>, userId: string): 'yes' | 'same' | 'another' | undefined {
  if (again === undefined || again === 'yes' || again === 'same') return again;
  return again === refusePerson(userId) ? 'another' : undefined;
}

function toFlow(
  returnTo: string,
  { toClient, again }: { readonly toClient: string | undefined; readonly again: Again | undefined },
): Flow {
  return {
    returnTo,
    leadsToClient: toClient !== undefined,
    again,
    hidden: {
      return_to: returnTo === HOME ? undefined : returnTo,
      to_client: toClient,
      again,
    },
  };
}

/** Finds the client whose authorization request the sign-in returns to. */
export function findAskingClientId({ returnTo }: Pick<Flow, 'returnTo'>): string | undefined {
  if (!returnTo.startsWith(AUTHORIZATION)) return undefined;
  return new URLSearchParams(returnTo.slice(AUTHORIZATION.length)).get('client_id') ?? undefined;
}

/** Formats the flow as a query string; `''` if it leads to the first page. */
export function formatFlow(
  flow: Pick<Flow, 'hidden'>,
  more: Readonly<Record<string, string | undefined>> = {},
): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...flow.hidden, ...more })) if (value) query.set(name, value);
  return query.size === 0 ? '' : `?${query.toString()}`;
}

function encryptPermission(cipher: SecretCipher, returnTo: string): string {
  return Buffer.from(cipher.encrypt(CLIENT, flowAssociatedData(returnTo))).toString('base64url');
}

function isFromService(cipher: SecretCipher, returnTo: string, toClient: string): boolean {
  try {
    return cipher.decrypt(Buffer.from(toClient, 'base64url'), flowAssociatedData(returnTo)).toString('utf8') === CLIENT;
  } catch {
    return false;
  }
}

function flowAssociatedData(returnTo: string): string {
  return `sign-in flow:${returnTo}`;
}
