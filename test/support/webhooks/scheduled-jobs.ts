/** Creates jobs for a scheduler of deliveries, and takes all jobs that may be sent. */
import type { Job } from '../../../src/webhooks/delivery/schedule/turn-tree.ts';

let lastId = 0;
/** A job of a hook, which has an origin and an owner of its own unless they are given. */
export function job(hookId: number, overrides: Partial<Job> = {}): Job {
  lastId += 1;
  const base = { id: lastId, hookId, origin: `http://o${hookId}`, ownerId: `w${hookId}`, bodyBytes: 100 };
  return { lane: 'first', ...base, ...overrides };
}

/** All that may be sent now. */
export function takeAll(next: () => Job | undefined): Job[] {
  const taken: Job[] = [];
  for (let found = next(); found !== undefined; found = next()) taken.push(found);
  return taken;
}
