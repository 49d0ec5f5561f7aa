/**
 * Decides whose delivery is sent next, so that neither a loud owner nor a slow receiver delays others (fairness). Turns go over
 * owner → destination origin → hook (`turn-tree.ts`), with a limit on what is under way at each level (`concurrency-limits.ts`).
 * First attempts go before retries, which have every fifth turn and never hold more than three quarters of the worker's slots.
 * Large bodies under way have a budget of bytes, so that the memory of a worker does not depend on what it is asked to send.
 *
 * Pure: reads no clock and does no I/O.
 */
import {
  type ConcurrencyLimits,
  type ConcurrencyOptions,
  createConcurrencyLimits,
  isLarge,
} from './concurrency-limits.ts';
import {
  attach,
  createRoot,
  createSkipped,
  ensureHookNode,
  type Job,
  type Lane,
  type Node,
  type Obstacle,
  pick,
  removeWhenEmpty,
  resume,
  resumeAll,
  type Skipped,
} from './turn-tree.ts';

const RETRY_EVERY = 5;
const RETRY_SHARE = 0.75;
const LANES: readonly Lane[] = ['first', 'retry'];

export interface Scheduler<J extends Job> {
  add(job: J): void;
  /** The next to send, which counts as under way from now on. */
  readonly next: () => J | undefined;
  /** Frees the slots of a job that `next` returned. */
  finish(job: J): void;
  /** The breakers of the origin and the hook may allow more now. */
  resume(origin: string, hookId: number): void;
  /** Forgets and returns the jobs that wait for a hook. */
  drop(hookId: number): J[];
  countWaiting(hookId: number, lane: Lane): number;
  readonly sending: number;
  readonly waiting: number;
}

interface State<J> {
  readonly limits: ConcurrencyLimits;
  readonly skipped: Skipped<J>;
  readonly roots: Readonly<Record<Lane, Node<J>>>;
  readonly hookNodes: Record<Lane, Map<number, Node<J>>>;
  readonly maxSending: number;
  readonly maxRetries: number;
  retriesSending: number;
  waiting: number;
  /** Counts the turns, modulo `RETRY_EVERY`; at 0 retries go first. */
  turn: number;
}

export function createScheduler<J extends Job>(options: ConcurrencyOptions): Scheduler<J> {
  const state = createState<J>(options);
  const { limits, skipped, hookNodes } = state;
  return {
    add: (job) => addJob(state, job),
    next: () => takeNext(state),
    finish: (job) => finishJob(state, job),
    resume: (origin, hookId) => {
      resume(skipped, 'origin', origin);
      resume(skipped, 'hook', hookId);
    },
    drop: (hookId) => LANES.flatMap((lane) => dropJobs(state, lane, hookId)),
    countWaiting: (hookId, lane) => hookNodes[lane].get(hookId)?.jobs.length ?? 0,
    get sending() {
      return limits.sending;
    },
    get waiting() {
      return state.waiting;
    },
  };
}

function createState<J>(options: ConcurrencyOptions): State<J> {
  const { worker } = options.caps;
  return {
    limits: createConcurrencyLimits(options),
    skipped: createSkipped(),
    roots: { first: createRoot(), retry: createRoot() },
    hookNodes: { first: new Map(), retry: new Map() },
    maxSending: worker,
    maxRetries: Math.max(1, Math.floor(worker * RETRY_SHARE)),
    retriesSending: 0,
    waiting: 0,
    turn: 0,
  };
}

function addJob<J extends Job>(state: State<J>, job: J): void {
  const node = ensureHookNode(state.roots[job.lane], job);
  node.jobs.push(job);
  state.hookNodes[job.lane].set(job.hookId, node);
  state.waiting += 1;
  attach(state.skipped, node);
}

function takeNext<J extends Job>(state: State<J>): J | undefined {
  if (state.limits.sending >= state.maxSending) return undefined;
  const [preferred, other]: [Lane, Lane] = state.turn === 0 ? ['retry', 'first'] : ['first', 'retry'];
  const job = pickFrom(state, preferred) ?? pickFrom(state, other);
  if (job === undefined) return undefined;
  state.turn = (state.turn + 1) % RETRY_EVERY;
  state.waiting -= 1;
  state.limits.take(job);
  if (job.lane === 'retry') state.retriesSending += 1;
  forgetWhenEmpty(state, job.lane, job.hookId);
  return job;
}

function pickFrom<J extends Job>(state: State<J>, lane: Lane): J | undefined {
  if (lane === 'retry' && state.retriesSending >= state.maxRetries) return undefined;
  return pick(state.roots[lane], {
    skipped: state.skipped,
    findObstacle: (node) => findObstacle(state.limits, node),
  });
}

function findObstacle<J extends Job>(limits: ConcurrencyLimits, node: Node<J>): Obstacle | undefined {
  if (!hasSlot(limits, node)) return node.level;
  const [next] = node.jobs;
  return next === undefined || limits.hasRoomForBody(next) ? undefined : 'body';
}

function hasSlot<J>(limits: ConcurrencyLimits, { level, key, parent }: Node<J>): boolean {
  if (level === 'owner') return limits.hasSlotForOwner(String(key));
  if (level === 'origin') return limits.hasSlotAtOrigin(String(key), String(parent?.key));
  return limits.hasSlotForHook(Number(key));
}

function finishJob<J extends Job>(state: State<J>, job: J): void {
  const { limits, skipped } = state;
  limits.free(job);
  if (job.lane === 'retry') state.retriesSending -= 1;
  // A slot of the worker is free again, so any owner may get it.
  resumeAll(skipped, 'owner');
  resume(skipped, 'origin', job.origin);
  resume(skipped, 'hook', job.hookId);
  if (isLarge(job.bodyBytes)) resumeAll(skipped, 'body');
}

function dropJobs<J>(state: State<J>, lane: Lane, hookId: number): J[] {
  const jobs = state.hookNodes[lane].get(hookId)?.jobs.splice(0) ?? [];
  state.waiting -= jobs.length;
  forgetWhenEmpty(state, lane, hookId);
  return jobs;
}

function forgetWhenEmpty<J>({ hookNodes, skipped }: State<J>, lane: Lane, hookId: number): void {
  const node = hookNodes[lane].get(hookId);
  if (node === undefined || node.jobs.length > 0) return;
  hookNodes[lane].delete(hookId);
  // A long-lived Map with many deletions keeps garbage in V8's old generation.
  if (hookNodes[lane].size === 0) hookNodes[lane] = new Map();
  removeWhenEmpty(skipped, node);
}
