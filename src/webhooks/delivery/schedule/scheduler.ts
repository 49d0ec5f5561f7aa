/**
 * Decides whose delivery is sent next, so that neither a busy owner nor a slow receiver delays others (fairness). Owners take turns,
 * then origins of an owner, then hooks of an origin (`turn-tree.ts`), with a limit of deliveries under way at each level
 * (`concurrency-limits.ts`). First attempts go before retries, which have every fifth turn and at most three quarters of the worker's
 * slots. Large bodies under way have a budget of bytes, which bounds the memory of a worker.
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
  type PickContext,
  pick,
  removeWhenEmpty,
  resume,
  resumeAll,
  type Skipped,
} from './turn-tree.ts';

const RETRY_EVERY = 5;
const RETRY_SHARE = 0.75;
const LANES: readonly Lane[] = ['first', 'retry'];
/** How many nodes are released at a time when an origin may have a slot: several, since some owners may be at other limits. */
const LET_GO = 4;

export interface Scheduler<J extends Job> {
  add(job: J): void;
  /** Takes the next job to send, which counts as under way from now on. */
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

/** The waiting jobs of one lane. */
interface LaneState<J> {
  readonly root: Node<J>;
  readonly skipped: Skipped<J>;
  /** Origins that may have a slot for nodes that wait for one. */
  readonly openOrigins: Set<string>;
  hookNodes: Map<number, Node<J>>;
}

interface State<J> {
  readonly limits: ConcurrencyLimits;
  readonly lanes: Readonly<Record<Lane, LaneState<J>>>;
  readonly maxSending: number;
  readonly maxRetries: number;
  retriesSending: number;
  waiting: number;
  /** Counts the turns, modulo `RETRY_EVERY`; at 0 retries go first. */
  turn: number;
}

export function createScheduler<J extends Job>(options: ConcurrencyOptions): Scheduler<J> {
  const state = createState<J>(options);
  const { limits, lanes } = state;
  return {
    add: (job) => addJob(state, job),
    next: () => takeNext(state),
    finish: (job) => finishJob(state, job),
    resume: (origin, hookId) => resumeAt(state, origin, hookId),
    drop: (hookId) => LANES.flatMap((lane) => dropJobs(state, lane, hookId)),
    countWaiting: (hookId, lane) => lanes[lane].hookNodes.get(hookId)?.jobs.length ?? 0,
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
    lanes: { first: createLane(), retry: createLane() },
    maxSending: worker,
    maxRetries: Math.max(1, Math.floor(worker * RETRY_SHARE)),
    retriesSending: 0,
    waiting: 0,
    turn: 0,
  };
}

function createLane<J>(): LaneState<J> {
  return { root: createRoot(), skipped: createSkipped(), openOrigins: new Set(), hookNodes: new Map() };
}

function addJob<J extends Job>(state: State<J>, job: J): void {
  const { root, hookNodes } = state.lanes[job.lane];
  const node = ensureHookNode(root, job);
  node.jobs.push(job);
  hookNodes.set(job.hookId, node);
  state.waiting += 1;
  attach(node);
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
  forgetWhenEmpty(state.lanes[job.lane], job.hookId);
  return job;
}

function pickFrom<J extends Job>(state: State<J>, lane: Lane): J | undefined {
  if (lane === 'retry' && state.retriesSending >= state.maxRetries) return undefined;
  const { root, skipped } = state.lanes[lane];
  const context: PickContext<J> = { skipped, findObstacle: (node) => findObstacle(state.limits, node) };
  // Even while other jobs can be sent: nodes that were released before may be at other limits.
  letMoreGo(state.limits, state.lanes[lane]);
  for (;;) {
    const job = pick(root, context);
    if (job !== undefined || !letMoreGo(state.limits, state.lanes[lane])) return job;
  }
}

/** Releases a few nodes of one origin, which is then the last in the order. False if no origin has a slot for a waiting node. */
function letMoreGo<J>(limits: ConcurrencyLimits, { skipped, openOrigins }: LaneState<J>): boolean {
  for (const origin of openOrigins) {
    openOrigins.delete(origin);
    if (!limits.hasSlotAtOrigin(origin) || !resume(skipped, 'origin', origin, LET_GO)) continue;
    openOrigins.add(origin);
    return true;
  }
  return false;
}

function findObstacle<J extends Job>(limits: ConcurrencyLimits, node: Node<J>): Obstacle | undefined {
  const { level, key, parent, jobs } = node;
  if (level === 'owner') return limits.hasSlotForOwner(String(key)) ? undefined : 'owner';
  if (level === 'origin') {
    if (!limits.hasSlotAtOrigin(String(key))) return 'origin';
    return limits.hasShareAtOrigin(String(key), String(parent?.key)) ? undefined : 'share';
  }
  if (!limits.hasSlotForHook(Number(key))) return 'hook';
  const [next] = jobs;
  return next === undefined || limits.hasRoomForBody(next) ? undefined : 'body';
}

function finishJob<J extends Job>(state: State<J>, job: J): void {
  state.limits.free(job);
  if (job.lane === 'retry') state.retriesSending -= 1;
  resumeAt(state, job.origin, job.hookId);
  for (const lane of LANES) {
    const { skipped } = state.lanes[lane];
    // A slot of the worker is free again, so any owner may get it. Only owners with deliveries under way wait here, so they are few.
    resumeAll(skipped, 'owner');
    if (isLarge(job.bodyBytes)) resume(skipped, 'body');
  }
}

function resumeAt<J>({ lanes }: State<J>, origin: string, hookId: number): void {
  for (const lane of LANES) {
    const { skipped, openOrigins } = lanes[lane];
    if (resume(skipped, 'origin', origin, LET_GO)) openOrigins.add(origin);
    // Only owners with deliveries under way at this origin wait here, so they are few.
    resume(skipped, 'share', origin);
    resume(skipped, 'hook', hookId);
  }
}

function dropJobs<J>(state: State<J>, lane: Lane, hookId: number): J[] {
  const jobs = state.lanes[lane].hookNodes.get(hookId)?.jobs.splice(0) ?? [];
  state.waiting -= jobs.length;
  forgetWhenEmpty(state.lanes[lane], hookId);
  return jobs;
}

function forgetWhenEmpty<J>(lane: LaneState<J>, hookId: number): void {
  const node = lane.hookNodes.get(hookId);
  if (node === undefined || node.jobs.length > 0) return;
  lane.hookNodes.delete(hookId);
  // A long-lived Map with many deletions keeps garbage in V8's old generation.
  if (lane.hookNodes.size === 0) lane.hookNodes = new Map();
  removeWhenEmpty(node);
}
