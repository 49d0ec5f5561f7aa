/** Runs as the `post-receive` hook of git: spools the events of a push, and sends them. */
import { describeError, Failure } from '../../errors.ts';
import type { World } from '../../world.ts';
import { fitEvent } from './fit-event.ts';
import type { SendEntry } from './http-sender.ts';
import type { SpoolEntry } from './read-entry.ts';
import { type PushSource, parseUpdates, readPush } from './read-push.ts';
import { createGit } from './run-git.ts';
import { type SpoolReport, sendSpool } from './send-spool.ts';
import { openSpool } from './spool.ts';

export interface PostReceiveOptions extends Pick<PushSource, 'actor' | 'pushOptions' | 'onGap'> {
  /** The bare repository. */
  readonly gitDir: string;
  /** `owner/name` on the service. */
  readonly repository: string;
  /** Git wrote this to the hook: a line for every reference. */
  readonly input: Buffer;
  readonly send: SendEntry;
  /** Called when the spool cannot be written; the events are sent without it. */
  readonly onSpoolFailure: (reason: string) => void;
  readonly world: World;
}

/** How long a push may wait for the service; events that are not sent by then stay in the spool. */
const PATIENCE_MS = 2000;

/** Writes all events to the spool first: once they are flushed to disk none is lost, and earlier events are sent first. */
export async function handlePostReceive(options: PostReceiveOptions): Promise<SpoolReport> {
  const { gitDir, repository, world } = options;
  const events = await readPush({ ...options, git: createGit(gitDir), updates: parseUpdates(options.input) });
  const entries = events.map((event) => ({ repository, key: `git:${world.uuid()}`, event: fitEvent(event) }));
  const spool = openSpool(gitDir, world);
  const signal = AbortSignal.timeout(PATIENCE_MS);
  if (entries.length === 0) return await sendSpool(spool, options.send, signal);
  try {
    await spool.append(entries);
  } catch (error) {
    options.onSpoolFailure(describeError(error));
    return await sendWithoutSpool(entries, options.send, signal);
  }
  return await sendSpool(spool, options.send, signal);
}

/** Sends directly if the spool cannot be written (full disk, folder of another user), so that no event is lost while the service is up. */
async function sendWithoutSpool(
  entries: readonly SpoolEntry[],
  send: SendEntry,
  signal: AbortSignal,
): Promise<SpoolReport> {
  const refused: string[] = [];
  for (const [sent, entry] of entries.entries()) {
    const outcome = await send(entry, signal).catch((error: unknown) => ({
      kind: 'later' as const,
      reason: describeError(error),
    }));
    if (outcome.kind === 'later')
      throw new Failure(
        'unavailable',
        `${entries.length - sent} of ${entries.length} events are lost: ${outcome.reason}`,
      );
    if (outcome.kind === 'refused') refused.push(`the service refused an event: ${outcome.reason}`);
  }
  return { sent: entries.length - refused.length, waiting: undefined, refused, stuck: new Map() };
}
