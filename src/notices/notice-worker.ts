/**
 * Finds troubles, and sends each notice by mail and as an event at most once. Every process does this; records in the store
 * prevent duplicates.
 */
import type { BoundStatement, Store } from '../database/store.ts';
import { isFailure } from '../errors.ts';
import type { Mailer } from '../mail/mailer.ts';
import type { Log } from '../telemetry/log.ts';
import { createRoundWorker } from '../workers/round-worker.ts';
import type { Worker } from '../workers/worker.ts';
import type { World } from '../world.ts';
import type { Audience, Notice, NoticeSource, PublishNotice, Recipient } from './notice.ts';
import {
  type ChannelName,
  closeSilently,
  findLastNotice,
  forgetOld,
  forgetOpen,
  isDue,
  listOpen,
  recordNoticeOnce,
} from './notice-store.ts';
import { chooseNoticeTexts } from './texts.ts';

export interface NoticeDependencies {
  readonly store: Store;
  readonly world: World;
  readonly log: Log;
  /** Undefined if mail is off. */
  readonly mailer: Mailer | undefined;
  /** Undefined if notices go by mail only. */
  readonly publish?: PublishNotice | undefined;
  readonly sources: readonly NoticeSource[];
  /** People with a verified address who have not switched notices off. */
  readonly listRecipients: (audience: Audience) => Promise<readonly Recipient[]>;
  /** The address of the service, for the footer. */
  readonly service: string;
}

const REST_MS = 30_000;
/** The shortest time between two notices about the same state of one cause. */
const QUIET_MS = 3_600_000;
/**
 * The most notices for one audience in a round; the next rounds send the others. Mails are sent one after the other, so those
 * for the owner of thousands of webhooks would delay the links with which others choose a password.
 */
const MAX_OF_AUDIENCE = 10;
/**
 * For this long after the start of this process, a process with another `NOTICE_REPOSITORY` may still run beside it, and its
 * records of notices are not touched.
 */
const SETTLE_MS = 600_000;

export function createNoticeWorker(dependencies: NoticeDependencies): Worker {
  const { world, log } = dependencies;
  const startedMs = world.monotonicMs();
  const round = (signal: AbortSignal) =>
    notifyOfTroubles(dependencies, signal, { isSettled: world.monotonicMs() - startedMs >= SETTLE_MS });
  return createRoundWorker({ name: 'notices', restMs: REST_MS, world, log, round });
}

/** Exported for its test. `isSettled` if this process has run for `SETTLE_MS`. */
export async function notifyOfTroubles(
  dependencies: NoticeDependencies,
  signal: AbortSignal,
  { isSettled }: { readonly isSettled: boolean },
): Promise<void> {
  const { store, world, sources, log } = dependencies;
  const channels = createChannels(dependencies);
  const forgetsEvents = isSettled && !channels.some(({ name }) => name === 'events');
  const notify = async (source: NoticeSource): Promise<void> => {
    if (forgetsEvents) await forgetOpen(store, 'events', [source.prefix, world.nowMs() - SETTLE_MS]);
    await notifyOfSource(dependencies, channels, source);
  };
  for (const source of sources) {
    if (signal.aborted) return;
    // A failed source must not hold back the notices of other sources.
    await notify(source).catch((err: unknown) =>
      log.error({ err, source: source.prefix }, 'Cannot look for what needs attention'),
    );
  }
  await forgetOld(store, world.nowMs() - QUIET_MS);
}

interface Channel {
  readonly name: ChannelName;
  /** Sends the notice. Returns statements for the transaction that records it as sent. */
  readonly send: (notice: Notice, key: string) => Promise<readonly BoundStatement[]>;
}

function createChannels(dependencies: NoticeDependencies): Channel[] {
  const { mailer, publish } = dependencies;
  const mail: Channel[] =
    mailer === undefined ? [] : [{ name: 'mail', send: (notice) => writeMails(dependencies, mailer, notice) }];
  const events: Channel[] =
    publish === undefined
      ? []
      : [{ name: 'events', send: (notice, key) => publishNotice(dependencies.log, publish, { notice, key }) }];
  return [...mail, ...events];
}

async function notifyOfSource(
  { store, world, log }: NoticeDependencies,
  channels: readonly Channel[],
  source: NoticeSource,
): Promise<void> {
  // Read before the sources, so that a trouble that begins in between does not appear to be over.
  const open = await Promise.all(channels.map(({ name }) => listOpen(store, name, source.prefix)));
  const troubles = await source.listTroubles(world.nowMs());
  const still = new Set(troubles.map(({ cause }) => cause));
  for (const [index, channel] of channels.entries()) {
    const openCauses = new Set(open[index]);
    const records = { store, world, takePlace: createPlaces() };
    const attempt = async (cause: string, send: () => Promise<void>) => {
      const report = (err: unknown) => log.error({ err, cause, channel: channel.name }, 'Cannot send a notice');
      await send().catch(report);
    };
    for (const trouble of troubles) {
      const { cause } = trouble;
      await attempt(cause, () => sendNotice(records, channel, { ...trouble, wasOpen: openCauses.has(cause) }));
    }
    for (const cause of openCauses)
      if (!still.has(cause)) await attempt(cause, () => sendRecovery(records, channel, { source, cause }));
  }
}

interface Records extends Pick<NoticeDependencies, 'store' | 'world'> {
  /** Returns false when this round has reached its limit of notices for the audience. */
  readonly takePlace: (audience: Audience) => boolean;
}

function createPlaces(): Records['takePlace'] {
  const counts = new Map<string, number>();
  return (audience) => {
    const key = audience.kind === 'owner' ? audience.ownerId : audience.kind;
    const count = counts.get(key) ?? 0;
    counts.set(key, count + 1);
    return count < MAX_OF_AUDIENCE;
  };
}

async function sendRecovery(
  records: Records,
  channel: Channel,
  { source, cause }: { readonly source: NoticeSource; readonly cause: string },
): Promise<void> {
  const recovery = await source.findRecovery(cause, records.world.nowMs());
  if (recovery === 'not yet') return;
  if (recovery === undefined) await closeSilently(records.store, channel.name, cause);
  else await sendNotice(records, channel, recovery);
}

async function sendNotice(
  { store, world, takePlace }: Records,
  { name, send }: Channel,
  notice: Notice & { readonly wasOpen?: boolean },
): Promise<void> {
  const { cause, state, sinceMs, wasOpen, audience } = notice;
  const nowMs = world.nowMs();
  const moment = { state, sinceMs, wasOpen, nowMs, quietUntilMs: nowMs - QUIET_MS };
  const last = await findLastNotice(store, name, { cause, state });
  if (!isDue(last, moment) || !takePlace(audience)) return;
  // A value that makes keys differ and is the same in all processes: the time of the previous notice, or the hour of a first one.
  const since = last?.sentAtMs ?? Math.floor(nowMs / QUIET_MS);
  // Published before it is recorded: after a crash in between, it is published again under the same idempotency key.
  const statements = await send(notice, `${cause} ${state} ${since}`);
  await store.call(recordNoticeOnce, { channel: name, cause, ...moment, statements });
}

async function publishNotice(
  log: Log,
  publish: PublishNotice,
  { notice: { cause, state, write }, key }: { readonly notice: Notice; readonly key: string },
): Promise<readonly BoundStatement[]> {
  await publish({ cause, state, text: write(chooseNoticeTexts('en')), key }).catch((error: unknown) => {
    // There is no repository to publish to, so a retry is useless. Any other failure is tried again.
    if (!isFailure(error) || error.code !== 'not_found') throw error;
    log.error({ cause, reason: error.message }, 'A notice was not published');
  });
  return [];
}

async function writeMails(
  { listRecipients, service }: NoticeDependencies,
  mailer: Mailer,
  { audience, write }: Notice,
): Promise<BoundStatement[]> {
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
