/** Sends an event from git to the service, and decides from the answer whether to send it again later. */
import type { EventInput } from '../events/event.ts';
import { KEY_USED } from '../intake/prepare-event.ts';
import { fitEvent } from './fit-event.ts';
import type { SpoolEntry } from './read-entry.ts';

/** `later`: the service did not answer, or cannot accept the event now. `refused`: it will never accept this event. */
export type SendOutcome =
  | { readonly kind: 'sent' }
  /** `repository`: the service refuses events of this repository for now. `service`: it accepts no events for now. */
  | { readonly kind: 'later'; readonly scope: 'repository' | 'service'; readonly reason: string }
  | { readonly kind: 'refused'; readonly reason: string };

export type SendEntry = (entry: SpoolEntry, signal: AbortSignal) => Promise<SendOutcome>;

export interface ServiceAddress {
  /** Address of the resource API. */
  readonly url: string;
  readonly token: string;
}

/** An event with such an answer will never be accepted. Other causes can be fixed: renew a token, create a repository, start a service. */
const FINAL_STATUSES = new Set([400, 413, 422]);
/** The token does not fit the repository, or the repository does not exist; events of other repositories may still be accepted. */
const REPOSITORY_STATUSES = new Set([401, 403, 404, 409]);

/** Smaller sizes, tried in turn if the service refuses a large request. */
const SMALLER_EVENT_BYTES = [100_000, 10_000, 1000];

export function createHttpSender({ url, token }: ServiceAddress): SendEntry {
  const post = ({ repository, key }: SpoolEntry, event: EventInput, signal: AbortSignal) =>
    fetch(`${url}/api/v5/repos/${repository.split('/').map(encodeURIComponent).join('/')}/events`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'idempotency-key': key },
      body: JSON.stringify(event),
      // A redirect can turn the POST into a GET of a page, such as a sign-in page, whose 200 does not mean that the event was stored.
      redirect: 'manual',
      signal,
    });
  return async (entry, signal) => {
    let response = await post(entry, entry.event, signal);
    for (const maxBytes of SMALLER_EVENT_BYTES) {
      if (response.status !== 413) break;
      await response.text();
      const smaller = tryFit(entry.event, maxBytes);
      if (smaller === undefined) return { kind: 'refused', reason: 'the event is malformed, and too large' };
      response = await post(entry, smaller, signal);
    }
    return judgeAnswer(response, await response.text());
  };
}

/** Undefined if the file does not contain an event. */
function tryFit(event: EventInput, maxBytes: number): EventInput | undefined {
  try {
    return fitEvent(event, maxBytes);
  } catch {
    return undefined;
  }
}

/** The service answers 202 once an event is stored. Another 2xx or a redirect comes from another server, such as a proxy. */
const STORED = 202;

function judgeAnswer({ status, headers }: Response, text: string): SendOutcome {
  if (status === STORED) return { kind: 'sent' };
  if (status < 400) return { kind: 'later', scope: 'service', reason: describeStranger(status, headers) };
  const { message, error_code_name: name } = readRefusal(text);
  // Keys are random, so this event was stored before, perhaps shortened differently, and the answer was lost.
  if (status === 409 && name === KEY_USED) return { kind: 'sent' };
  const reason = describeRefusal(status, message ?? '');
  if (FINAL_STATUSES.has(status)) return { kind: 'refused', reason };
  return { kind: 'later', scope: REPOSITORY_STATUSES.has(status) ? 'repository' : 'service', reason };
}

function describeStranger(status: number, headers: Headers): string {
  const location = headers.get('location');
  const target = location === null ? '' : ` to "${location.slice(0, 200)}"`;
  return `${status}${target} instead of 202: the address is not that of the service, or a proxy in front of it answers`;
}

function describeRefusal(status: number, message: string): string {
  const reason = message.startsWith(`${status}`) ? message : `${status} ${message}`;
  return status === 401 ? `${reason}; "trivet git-hook install" with --token-file sets another token` : reason;
}

interface Refusal {
  readonly message?: string;
  readonly error_code_name?: string;
}

function readRefusal(text: string): Refusal {
  try {
    return (JSON.parse(text) as Refusal | null) ?? {};
  } catch {
    return { message: text.slice(0, 200) };
  }
}
