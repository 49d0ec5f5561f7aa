import type { World } from '../../world.ts';
import { fitEvent } from './fit-event.ts';
import { type PushParts, parseUpdates, readPush } from './read-push.ts';
import { createGit } from './run-git.ts';
import { type SendEntry, type SendReport, sendSpool } from './send-spool.ts';
import { openSpool } from './spool.ts';

export interface PostReceiveOptions extends Pick<PushParts, 'actor' | 'pushOptions' | 'onGap'> {
  /** The bare repository. */
  readonly gitDir: string;
  /** `owner/name` here. */
  readonly repository: string;
  /** What git wrote to the hook: a line for every reference. */
  readonly input: Buffer;
  readonly send: SendEntry;
  readonly world: World;
}

/** How long a push may wait for us; what is not sent by then waits in the spool. */
const PATIENCE_MS = 2000;

/** Everything is written to the spool first: once that is flushed, nothing is lost, and what was left before goes first. */
export async function handlePostReceive(options: PostReceiveOptions): Promise<SendReport> {
  const { gitDir, repository, world } = options;
  const events = await readPush({ ...options, git: createGit(gitDir), updates: parseUpdates(options.input) });
  const spool = openSpool(gitDir, world);
  if (events.length > 0)
    await spool.append(events.map((event) => ({ repository, key: `git:${world.uuid()}`, event: fitEvent(event) })));
  return await sendSpool(spool, options.send, AbortSignal.timeout(PATIENCE_MS));
}
