/** Notes what was known before each observed time: the newest few thousand, as columns of numbers that use little memory. */
import { PREDICTION_TARGETS, type PredictionTarget } from '../../schema/observation-table.ts';

/** Whose observed time it is. */
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

/** Each part of a note is as many numbers as `PartLengths` says. */
export type Parts<Part extends string> = Readonly<Record<Part, ArrayLike<number>>>;
export type PartLengths<Part extends string> = Readonly<Record<Part, number>>;

/** The numbers of the first notes since a moment, by the owner whose time changed what is noted. NONE where no time has. */
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
  /** Means of this target that were noted until now are relative to another model, except those that `renew` writes. */
  outdateMeans(target: PredictionTarget): void;
  /** Writes a part of a note that is kept, by the served model. */
  renew(number: number, part: Part, values: ArrayLike<number>): void;
  /**
   * How many times this process had observed when a request was sent at this time of day: at least those before the oldest note, and
   * before most other requests. The clock of a caller may be minutes late.
   */
  countBy(ms: number): number;
  /** The first notes from this number on. */
  findLater(owners: NotedOwners, since: number): LaterNotes;
}

/** Notes are kept in 3 MB at most: of a request that is older than all notes, the moment of the oldest counts. */
const MOST_NOTES = 4096;
/** A request was sent at most this many observed times ago, and this many times as many as two of five others are under way for. */
const LEAST_LIMIT = 64;
const LIMIT_FACTOR = 8;
/** Steps of a quantile: three of five are longer under way. Unlike a mean, it does not follow the requests of late clocks. */
const DELAY_RISE = 1.02;
const DELAY_FALL = 1.03;
/** Most models have few reports. */
const FIRST_NOTES = 64;

export function createMomentRing<Part extends string>(lengths: PartLengths<Part>): MomentRing<Part> {
  const layout = layOut(lengths);
  const models = { ttft: 0, tpot: 0 };
  let columns = createColumns(FIRST_NOTES, layout.width);
  let observedTimes = 0;
  /** How many times are observed between a request and its own time, at least in three of five lately. */
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
      const at = observedTimes % columns.capacity;
      const before = observedTimes === 0 ? knownMs : columns.knownMs[(observedTimes - 1) % columns.capacity]!;
      // A clock may be set back. Times must rise, since they are searched.
      columns.knownMs[at] = Math.max(before, knownMs);
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

/** Before the largest capacity is full, a note stands at its number. */
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

/** From the first number up to the one before `to`. */
interface Range {
  readonly from: number;
  readonly to: number;
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
