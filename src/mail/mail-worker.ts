/**
 * Sends the waiting mails, and decides when a failed one is retried or given up. Every process may do this: a process first
 * increases `attempts` by a conditional UPDATE, and the one that succeeds sends. A mail that the server has accepted is sent again
 * only if the reply is lost or too late, or if, before the row is deleted, the process dies or the database is away for a quarter
 * of an hour.
 */
import type { Store } from '../database/store.ts';
import type { SecretCipher } from '../encryption/secret-cipher.ts';
import { describeError, isFailure } from '../errors.ts';
import type { SteadyWorld } from '../steady-clock.ts';
import type { Log } from '../telemetry/log.ts';
import { createRoundWorker } from '../workers/round-worker.ts';
import type { Worker } from '../workers/worker.ts';
import type { Mail } from './mail.ts';
import type { MailOutcome } from './mail-metrics.ts';
import { leaseMail, listDueMails, mailAssociatedData, postpone, remove, type WaitingMail } from './mail-store.ts';
import { LIMITS, type Smtp } from './smtp.ts';

export interface MailWorkerDependencies {
  readonly store: Store;
  readonly cipher: SecretCipher;
  readonly world: SteadyWorld;
  readonly log: Log;
  readonly smtp: Smtp;
  readonly count?: (outcome: MailOutcome) => void;
  /** Mails that the mail server has accepted and whose rows are not deleted yet. They are deleted before others are sent. */
  readonly taken?: TakenMails;
}

const REST_MS = 1000;
const BATCH = 20;
const MINUTE_MS = 60_000;
/** The duration of a lease in milliseconds: longer than any attempt. */
const LEASE_MS = LIMITS.untilSentMs + LIMITS.replyMs + 3 * MINUTE_MS;
const WAITS_MS = [MINUTE_MS, 5 * MINUTE_MS, 15 * MINUTE_MS, 60 * MINUTE_MS];
const LONGEST_WAIT_MS = 60 * MINUTE_MS;

export function createMailWorker(dependencies: MailWorkerDependencies): Worker {
  const { world, log } = dependencies;
  const taken: TakenMails = new Map();
  const round = (signal: AbortSignal) => sendDueMails({ ...dependencies, taken }, signal);
  return createRoundWorker({ name: 'mail', restMs: REST_MS, world, log, round });
}

/** Exported for its test. */
export async function sendDueMails(dependencies: MailWorkerDependencies, signal: AbortSignal): Promise<void> {
  const { store, world, taken = new Map() } = dependencies;
  for (const mail of taken.values()) await removeTaken(store, taken, mail);
  for (;;) {
    const nowMs = world.nowMs();
    const due = await listDueMails(store, { nowMs, latestMs: nowMs + 2 * LONGEST_WAIT_MS, limit: BATCH });
    for (const mail of due) {
      if (signal.aborted) return;
      const leased = await leaseMail(store, mail, world.nowMs() + LEASE_MS);
      if (leased !== undefined) await sendLeased({ ...dependencies, taken }, leased, signal);
    }
    if (due.length < BATCH) return;
  }
}

async function sendLeased(
  { store, cipher, world, log, smtp, taken, count = () => {} }: MailWorkerDependencies & { readonly taken: TakenMails },
  mail: WaitingMail,
  signal: AbortSignal,
) {
  if (mail.expires_at_ms <= world.nowMs()) {
    if (!world.isClockTrusted()) return;
    log.warn({ mail: mail.id, attempts: mail.attempts }, 'Gave up a mail: its time is over');
    count('expired');
    return await remove(store, mail);
  }
  const content = JSON.parse(cipher.decrypt(mail.content, mailAssociatedData(mail.id)).toString('utf8')) as Mail;
  // Such a mail is queued only so that a caller cannot find out by timing who has an account.
  if (content.to === '') return await remove(store, mail);
  try {
    await smtp.send(content, mail.id, signal);
    taken.set(mail.id, mail);
    count('sent');
  } catch (error) {
    const isFinal = isFailure(error) && error.details.isFinal === true;
    log.warn({ mail: mail.id, attempts: mail.attempts, reason: describeError(error) }, explain(isFinal));
    count(isFinal ? 'refused' : 'deferred');
    if (!isFinal) return await postpone(store, mail, world.nowMs() + waitAfter(mail.attempts));
  }
  await removeTaken(store, taken, mail);
}

type TakenMails = Map<string, WaitingMail>;

async function removeTaken(store: Store, taken: TakenMails, mail: WaitingMail): Promise<void> {
  await remove(store, mail);
  taken.delete(mail.id);
}

function explain(isFinal: boolean): string {
  return isFinal ? 'The mail server refused a mail for good' : 'Cannot send a mail yet';
}

function waitAfter(attempts: number): number {
  return WAITS_MS[attempts - 1] ?? LONGEST_WAIT_MS;
}
