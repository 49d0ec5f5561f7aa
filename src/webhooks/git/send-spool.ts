import { describeError } from '../../errors.ts';
import type { World } from '../../world.ts';
import type { EventInput } from '../events/event.ts';
import { KEY_USED } from '../intake/draft-event.ts';
import { fitEvent } from './fit-event.ts';
import type { Spool, SpoolEntry, SpooledEntry } from './spool.ts';

/** `later`: the service did not answer, or asked to wait. `refused`: it will never take this event. */
export type SendOutcome =
  | { readonly kind: 'sent' }
  | { readonly kind: 'later'; readonly reason: string }
  | { readonly kind: 'refused'; readonly reason: string };

export type SendEntry = (entry: SpoolEntry, signal: AbortSignal) => Promise<SendOutcome>;

export interface SendReport {
  readonly sent: number;
  /** Undefined when nothing is left. */
  readonly waiting: string | undefined;
  readonly refused: readonly string[];
}

/** Sends what waits, in order, until it is empty, one must wait, or the time is up. */
export async function sendSpool(spool: Spool, send: SendEntry, signal: AbortSignal): Promise<SendReport> {
  using lock = spool.lock();
  if (lock === undefined) return { sent: 0, waiting: 'another process is sending', refused: [] };
  const refused: string[] = [];
  let sent = 0;
  // What came in while sending is listed by the next round.
  for (let entries = spool.list(); entries.length > 0; entries = spool.list()) {
    for (const spooled of entries) {
      const outcome = await trySend(send, spooled, signal);
      if (outcome.kind === 'later') return { sent, waiting: outcome.reason, refused };
      if (outcome.kind === 'sent') sent += 1;
      else refused.push(outcome.reason);
      settle(spool, spooled.file, outcome);
    }
  }
  return { sent, waiting: undefined, refused };
}

async function trySend(send: SendEntry, { entry }: SpooledEntry, signal: AbortSignal): Promise<SendOutcome> {
  try {
    signal.throwIfAborted();
    return await send(entry, signal);
  } catch (error) {
    return { kind: 'later', reason: describeError(error) };
  }
}

function settle(spool: Spool, file: string, outcome: SendOutcome): void {
  if (outcome.kind === 'sent') spool.remove(file);
  else spool.setAside(file);
}

const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 60_000;
/** One announcement may take this long. */
const SEND_TIMEOUT_MS = 30_000;

export interface PatientOptions {
  /** When to give up for now; the next push tries again. */
  readonly untilMs: number;
  readonly world: Pick<World, 'nowMs' | 'sleep' | 'random'>;
}

/** Goes on until everything is sent or the time is up. Returns at once while another process sends. */
export async function sendPatiently(spool: Spool, send: SendEntry, options: PatientOptions): Promise<SendReport> {
  const { untilMs, world } = options;
  for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS)) {
    const report = await sendSpool(spool, withTimeout(send), AbortSignal.timeout(Math.max(1, untilMs - world.nowMs())));
    if (report.waiting === undefined || report.waiting === 'another process is sending') return report;
    if (world.nowMs() + waitMs >= untilMs) return report;
    await world.sleep(waitMs * (0.5 + world.random()));
  }
}

function withTimeout(send: SendEntry): SendEntry {
  return (entry, signal) => send(entry, AbortSignal.any([signal, AbortSignal.timeout(SEND_TIMEOUT_MS)]));
}

export interface ServiceAddress {
  /** Address of the resource API. */
  readonly url: string;
  readonly token: string;
}

/** These will be refused for ever; anything else may be mended: a token renewed, a repository created, a service started. */
const FINAL_STATUSES = new Set([400, 413, 422]);

/** Tried in turn at a service that takes no large request. */
const SMALLER_EVENT_BYTES = [100_000, 10_000, 1000];

export function createHttpSender({ url, token }: ServiceAddress): SendEntry {
  const post = ({ repository, key }: SpoolEntry, event: EventInput, signal: AbortSignal) =>
    fetch(`${url}/api/v5/repos/${repository}/events`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'idempotency-key': key },
      body: JSON.stringify(event),
      signal,
    });
  return async (entry, signal) => {
    let response = await post(entry, entry.event, signal);
    for (const maxBytes of SMALLER_EVENT_BYTES) {
      if (response.status !== 413) break;
      await response.text();
      response = await post(entry, fitEvent(entry.event, maxBytes), signal);
    }
    const text = await response.text();
    if (response.ok) return { kind: 'sent' };
    const { message, error_code_name: name } = readRefusal(text);
    // Keys are random: an event of this entry was stored before, perhaps in another length, and the answer was lost.
    if (response.status === 409 && name === KEY_USED) return { kind: 'sent' };
    const reason = `${response.status} ${message ?? ''}`;
    return { kind: FINAL_STATUSES.has(response.status) ? 'refused' : 'later', reason };
  };
}

interface Refusal {
  readonly message?: string;
  readonly error_code_name?: string;
}

function readRefusal(text: string): Refusal {
  try {
    return JSON.parse(text) as Refusal;
  } catch {
    return { message: text.slice(0, 200) };
  }
}
