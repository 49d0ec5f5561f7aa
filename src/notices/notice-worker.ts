/** Sends notices by mail and publishes them. Every process that can do either looks for troubles; the store decides which one sends. */
import type { BoundStatement, Store } from '../database/store.ts';
import { isFailure } from '../errors.ts';
import type { Mailer } from '../mail/mailer.ts';
import type { Log } from '../telemetry/log.ts';
import { createRoundWorker } from '../workers/round-worker.ts';
import type { Worker } from '../workers/worker.ts';
import type { World } from '../world.ts';
import type { Audience, Notice, NoticeSource, PublishNotice, Recipient } from './notice.ts';
import { closeSilently, findLastNotice, forgetOld, isDue, listOpen, recordNoticeOnce } from './notice-store.ts';
import { chooseNoticeTexts } from './texts.ts';

export interface NoticeDependencies {
  readonly store: Store;
  readonly world: World;
  readonly log: Log;
  /** Undefined: mail is off. */
  readonly mailer: Mailer | undefined;
  /** Undefined: notices go by mail only. */
  readonly publish?: PublishNotice | undefined;
  readonly sources: readonly NoticeSource[];
  /** Those who want notices and have a verified address. */
  readonly listRecipients: (audience: Audience) => Promise<readonly Recipient[]>;
  /** The address of the service, for the footer. */
  readonly service: string;
}

const REST_MS = 30_000;
/** Between two mails of one cause. */
const QUIET_MS = 3_600_000;

export function createNoticeWorker(dependencies: NoticeDependencies): Worker {
  const { world, log } = dependencies;
  const round = (signal: AbortSignal) => notifyOfTroubles(dependencies, signal);
  return createRoundWorker({ name: 'notices', restMs: REST_MS, world, log, round });
}

/** Exported for its test. */
export async function notifyOfTroubles(dependencies: NoticeDependencies, signal: AbortSignal): Promise<void> {
  const { store, world, sources, log } = dependencies;
  for (const source of sources) {
    if (signal.aborted) return;
    // One that fails must not keep the notices of the others.
    await notifyOfSource(dependencies, source).catch((err: unknown) =>
      log.error({ err, source: source.prefix }, 'Cannot look for what needs attention'),
    );
  }
  await forgetOld(store, world.nowMs() - QUIET_MS);
}

async function notifyOfSource(dependencies: NoticeDependencies, source: NoticeSource): Promise<void> {
  const { store, world } = dependencies;
  // Read first: what begins meanwhile is not taken for over.
  const open = await listOpen(store, source.prefix);
  const troubles = await source.listTroubles(world.nowMs());
  for (const trouble of troubles) await sendNotice(dependencies, trouble);
  const still = new Set(troubles.map(({ cause }) => cause));
  for (const cause of open) if (!still.has(cause)) await sendRecovery(dependencies, source, cause);
}

async function sendRecovery(dependencies: NoticeDependencies, source: NoticeSource, cause: string): Promise<void> {
  const recovery = await source.findRecovery(cause);
  if (recovery === undefined) await closeSilently(dependencies.store, cause);
  else await sendNotice(dependencies, recovery);
}

async function sendNotice(dependencies: NoticeDependencies, notice: Notice): Promise<void> {
  const { store, world } = dependencies;
  const { cause, state } = notice;
  const nowMs = world.nowMs();
  const moment = { state, nowMs, quietUntilMs: nowMs - QUIET_MS };
  const last = await findLastNotice(store, cause);
  if (!isDue(last, moment)) return;
  // Before it is recorded: after a crash in between it is published again, under the same key.
  await publishNotice(dependencies, notice, last?.sentAtMs ?? Math.floor(nowMs / QUIET_MS));
  await store.call(recordNoticeOnce, { cause, ...moment, mails: await writeMails(dependencies, notice) });
}

async function publishNotice({ publish, log }: NoticeDependencies, { write, ...notice }: Notice, since: number) {
  const { cause, state } = notice;
  if (publish === undefined) return;
  const text = write(chooseNoticeTexts('en'));
  await publish({ cause, state, text, key: `${cause} ${state} ${since}` }).catch((error: unknown) => {
    // Mails go out all the same. Any other failure is tried again.
    if (!isFailure(error) || error.code !== 'not_found') throw error;
    log.error({ cause, reason: error.message }, 'A notice was not published');
  });
}

async function writeMails(
  { mailer, listRecipients, service }: NoticeDependencies,
  { audience, write }: Notice,
): Promise<BoundStatement[]> {
  if (mailer === undefined) return [];
  const recipients = await listRecipients(audience);
  return recipients.map(({ name, email, language }) => {
    const texts = chooseNoticeTexts(language);
    const text = write(texts);
    const paragraphs = [texts.hello(name), ...text.paragraphs];
    return mailer.queueStatement({
      ...text,
      language: texts.language,
      to: email,
      paragraphs,
      footer: texts.footer(service),
    });
  });
}
