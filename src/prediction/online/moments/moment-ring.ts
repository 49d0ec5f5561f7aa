/** Notes what was known before each of the newest 4,096 observed times, in columns of numbers that use little memory. */
import { PREDICTION_TARGETS, type PredictionTarget } from '../../schema/observation-table.ts';

/** The owners of an observed time. */
export interface NotedOwners {
  readonly target: PredictionTarget;
  /** The array that the index has for the server: another one once its number is given to another server. */
  readonly address: Uint8Array | undefined;
  readonly podType: number;
  /** The key of the slot that answers for the pod type. */
  readonly slot: string;
}

export interface Observed {
  readonly knownMs: number;
  /** How many times this process had observed when the request was sent; undefined if that is not known. */
  readonly sentAfter?: number | undefined;
}

/** The parts of a note; each has as many numbers as `PartLengths` says. */
export type Parts<Part extends string> = Readonly<Record<Part, ArrayLike<number>>>;
export type PartLengths<Part extends string> = Readonly<Record<Part, number>>;

/** For each owner, the number of the first note since a moment that was written for one of its times; NONE if it had no time since. */
export interface LaterNotes {
  readonly slot: number;
  readonly server: number;
  /** Those whose means are relative to the served model. */
  readonly modelMeans: number;
  readonly podTypeMeans: number;
  readonly serverMeans: number;
}

export const NONE = -1;

export interface MomentRing<Part extends string> {
  /** How many times this process has observed; the number of the next note. */
  readonly observedTimes: number;
  /** The number of the oldest note that is kept. */
  readonly oldest: number;
  add(owners: NotedOwners, when: Observed, parts: Parts<Part>): void;
  read(number: number, part: Part): Float64Array;
  /** Marks all noted means of this target as relative to another model. Those that `renew` writes later are relative to the served one. */
  outdateMeans(target: PredictionTarget): void;
  /** Overwrites a part of a note, if the note is still kept, with values of the served model. */
  renew(number: number, part: Part, values: ArrayLike<number>): void;
  /**
   * How many times this process had observed when a request was sent at this time of day. The result is never before the oldest
   * note, nor further back than a few times the usual delay, since the clock of a caller may be minutes late.
   */
  countBy(ms: number): number;
  /** The first notes from this number on. */
  findLater(owners: NotedOwners, since: number): LaterNotes;
}

/** So notes use at most 3 MB. For a request that is older than all notes, the moment of the oldest is used. */
const MOST_NOTES = 4096;
/**
 * A request counts as sent at most LEAST_LIMIT + LIMIT_FACTOR × delay observed times ago; `delay` is the 40 % quantile of recent
 * delays.
 */
const LEAST_LIMIT = 64;
const LIMIT_FACTOR = 8;
/**
 * The factors that track the 40 % quantile of delays: three of five requests are under way for longer. Unlike a mean, it does not
 * follow the requests of late clocks.
 */
const DELAY_RISE = 1.02;
const DELAY_FALL = 1.03;
/** The first capacity is small, since most models have few reports. */
const FIRST_NOTES = 64;

export function createMomentRing<Part extends string>(lengths: PartLengths<Part>): MomentRing<Part> {
  const layout = layOut(lengths);
  const models = { ttft: 0, tpot: 0 };
  let columns = createColumns(FIRST_NOTES, layout.width);
  let observedTimes = 0;
  /** How many times were observed between a request and its own time: the 40 % quantile of recent requests. */
  let delay = 1;
  const limit = () => LEAST_LIMIT + LIMIT_FACTOR * delay;
  const oldest = () => Math.max(0, observedTimes - columns.capacity);

  function write(number: number, part: Part, values: ArrayLike<number>): void {
    columns.values.set(values, (number % columns.capacity) * layout.width + layout.starts[part]);
  }

  return {
    get observedTimes() {
      return observedTimes;
    },
    get oldest() {
      return oldest();
    },
    add(owners, { knownMs, sentAfter }, parts) {
      if (sentAfter !== undefined)
        delay = observedTimes - sentAfter > delay ? delay * DELAY_RISE : Math.max(1, delay / DELAY_FALL);
      if (observedTimes === columns.capacity && columns.capacity < MOST_NOTES) columns = enlarge(columns, layout.width);
      lowerLater(columns, { from: oldest(), to: observedTimes }, knownMs);
      const at = observedTimes % columns.capacity;
      columns.knownMs[at] = knownMs;
      columns.targets[at] = PREDICTION_TARGETS.indexOf(owners.target);
      columns.models[at] = models[owners.target];
      columns.podTypes[at] = owners.podType;
      columns.addresses[at] = owners.address;
      columns.slots[at] = owners.slot;
      for (const part of layout.parts) write(observedTimes, part, parts[part]);
      observedTimes++;
    },
    read(number, part) {
      const start = (number % columns.capacity) * layout.width + layout.starts[part];
      return Float64Array.from(columns.values.subarray(start, start + lengths[part]));
    },
    outdateMeans(target) {
      models[target]++;
    },
    renew(number, part, values) {
      if (number < oldest()) return;
      const at = number % columns.capacity;
      columns.models[at] = models[PREDICTION_TARGETS[columns.targets[at]!]!];
      write(number, part, values);
    },
    countBy(ms) {
      const from = Math.max(oldest(), Math.floor(observedTimes - limit()));
      return countBy(columns, { from, to: observedTimes }, ms);
    },
    findLater(owners, since) {
      const range = { from: Math.max(since, oldest()), to: observedTimes };
      return findLater(columns, range, { ...owners, model: models[owners.target] });
    },
  };
}

interface Columns {
  readonly capacity: number;
  readonly knownMs: Float64Array;
  readonly targets: Uint8Array;
  /** How many models had been served before the one that the means are relative to. */
  readonly models: Uint32Array;
  readonly podTypes: Int32Array;
  readonly addresses: (Uint8Array | undefined)[];
  readonly slots: string[];
  /** All parts of a note, one note after the other. */
  readonly values: Float64Array;
}

function createColumns(capacity: number, width: number): Columns {
  return {
    capacity,
    knownMs: new Float64Array(capacity),
    targets: new Uint8Array(capacity),
    models: new Uint32Array(capacity),
    podTypes: new Int32Array(capacity),
    addresses: [],
    slots: [],
    values: new Float64Array(capacity * width),
  };
}

/** Until the largest capacity is full, the index of a note is its number. */
function enlarge(full: Columns, width: number): Columns {
  const larger = { ...createColumns(2 * full.capacity, width), addresses: full.addresses, slots: full.slots };
  for (const name of ['knownMs', 'targets', 'models', 'podTypes', 'values'] as const) larger[name].set(full[name]);
  return larger;
}

function layOut<Part extends string>(lengths: PartLengths<Part>) {
  const parts = Object.keys(lengths) as Part[];
  const starts = {} as Record<Part, number>;
  let width = 0;
  for (const part of parts) {
    starts[part] = width;
    width += lengths[part];
  }
  return { parts, starts, width };
}

/** The numbers of notes from `from`, inclusive, to `to`, exclusive. */
interface Range {
  readonly from: number;
  readonly to: number;
}

/** Times must rise, since they are searched. After a clock was set back, those of before count as known by now. */
function lowerLater({ knownMs, capacity }: Columns, { from, to }: Range, ms: number): void {
  for (let number = to - 1; number >= from && knownMs[number % capacity]! > ms; number--)
    knownMs[number % capacity] = ms;
}

function countBy({ knownMs, capacity }: Columns, { from, to }: Range, ms: number): number {
  let [low, high] = [from, to];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (knownMs[middle % capacity]! <= ms) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** A tight loop: it walks all notes when the owners of a target are seldom observed. */
function findLater(
  columns: Columns,
  { from, to }: Range,
  sought: NotedOwners & { readonly model: number },
): LaterNotes {
  const { capacity, targets, models, podTypes, addresses, slots } = columns;
  const { address, podType, slot, model } = sought;
  const target = PREDICTION_TARGETS.indexOf(sought.target);
  const later = { slot: NONE, server: NONE, modelMeans: NONE, podTypeMeans: NONE, serverMeans: NONE };
  for (let number = from; number < to && later.serverMeans === NONE; number++) {
    const at = number % capacity;
    if (targets[at] !== target) continue;
    const isServer = addresses[at] === address;
    if (slots[at] === slot) {
      if (later.slot === NONE) later.slot = number;
      if (isServer && later.server === NONE) later.server = number;
    }
    if (models[at] !== model) continue;
    if (later.modelMeans === NONE) later.modelMeans = number;
    if (later.podTypeMeans === NONE && podTypes[at] === podType) later.podTypeMeans = number;
    if (isServer) later.serverMeans = number;
  }
  return later;
}
