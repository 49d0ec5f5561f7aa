/** Exchanges what processes have learned, by applying and appending rows of the log. It appends at most one row a second. */
import { setImmediate as yieldToCalls } from 'node:timers/promises';
import type { Store } from '../../database/store.ts';
import type { World } from '../../world.ts';
import type { Forecast } from '../online/forecasts.ts';
import type { SwappablePredictor } from '../online/predictor.ts';
import { certaintyOf } from '../schema/answer-certainty.ts';
import type { PredictionTarget } from '../schema/observation-table.ts';
import { decodeChunk, type NamedEntries } from './entries-codec.ts';
import type { NamedLiveState } from './live-state-store.ts';
import { createOutgoingRows } from './outgoing-rows.ts';
import { type LogRow, listLogRows } from './shared-log-store.ts';
import { createSharedModel, type SharedModel } from './shared-model.ts';
import { toStateForRestart } from './state-for-restart.ts';

export interface SharedLearning {
  /** Call before the live model observes the time. */
  beforeObserve(targetModel: string, forecast: Forecast, time: TimeToLearn): void;
  /** Applies the new rows of the log, and yields a summary of each. Ends when rows before them are gone (`hasLostRows`). */
  applyNewRows(): AsyncIterable<AppliedRow>;
  /** Rows were deleted before they were applied here: a saved state, which has them, must be restored. */
  readonly hasLostRows: boolean;
  /** Appends a row with what was observed here after the last row. Returns false if there was nothing to append. */
  append(): Promise<boolean>;
  /** The newest row of the log that is part of the served models. */
  readonly sequence: number;
  /** How many groups of sums have events of this process that are in no applied row. */
  countPending(): number;
  /** The agreed state of these models (`state-for-restart.ts`). */
  save(names: readonly string[]): NamedLiveState[];
  /** Restores saved states, one by one: calls are answered between two. The rows of the log after `sequence` are applied next. */
  restore(states: readonly NamedLiveState[], sequence: number): Promise<void>;
}

export interface TimeToLearn {
  readonly target: PredictionTarget;
  readonly outputTokens?: number | undefined;
}

export interface AppliedRow {
  readonly isOwn: boolean;
  readonly bytes: number;
  /** The time from the first of its events until this process applied the row, by the clocks of two processes. */
  readonly delayMs: number;
  readonly targetModels: readonly string[];
  /** Why the row, or the rest of it, was skipped. */
  readonly failure?: unknown;
}

export interface SharedLearningDependencies {
  readonly store: Store;
  readonly world: World;
  readonly predictor: SwappablePredictor;
}

/** The most entries of one row, enough for about a thousand servers. Others follow in the next row. */
export const MAX_ENTRIES = 4000;

export function createSharedLearning({ store, world, predictor }: SharedLearningDependencies): SharedLearning {
  const outgoing = createOutgoingRows(store, world);
  const models = createSharedModels(predictor, world);
  const reader = createLogReader(store);
  const isLive = (name: string) => predictor.liveNameOf(name) === name;
  let sinceMs: number | undefined;

  function addRow(taken: readonly NamedEntries[]): void {
    if (taken.length > 0) outgoing.add({ models: taken, sinceMs: sinceMs ?? world.nowMs() });
    sinceMs = undefined;
  }

  return {
    beforeObserve(targetModel, { key, podType }, { target, outputTokens }) {
      sinceMs ??= world.nowMs();
      const shared = models.open(predictor.liveNameOf(targetModel));
      shared.beforeObserve({ key, podType, target }, certaintyOf(target, outputTokens));
    },
    async *applyNewRows() {
      const touched = new Set<string>();
      for (let rows = await reader.readNext(); rows.length > 0; rows = await reader.readNext())
        for (const row of rows) {
          const applied = await applyRow({ models, world }, row, row.process === outgoing.process);
          // The row counts as applied after a failure too: otherwise no process could continue, or start, past a row that it
          // cannot read.
          reader.sequence = row.sequence;
          for (const name of applied.targetModels) touched.add(name);
          yield applied;
        }
      for (const name of touched) for (const _ of models.open(name).reweigh()) await yieldToCalls();
    },
    async append() {
      if (outgoing.count === 0) addRow(models.take(MAX_ENTRIES));
      const hasRow = outgoing.count > 0;
      await outgoing.appendFirst();
      return hasRow;
    },
    get sequence() {
      return reader.sequence;
    },
    get hasLostRows() {
      return reader.hasLostRows;
    },
    countPending: () => models.countPending(),
    // A name that has lost its live model meanwhile has nothing to save.
    save: (names) =>
      names.filter(isLive).map((targetModel) => {
        const shared = models.open(targetModel);
        shared.followSwap();
        const saved = toStateForRestart(predictor.live(targetModel).save(), (name) => shared.findBase(name));
        return { targetModel, sequence: reader.sequence, saved };
      }),
    async restore(states, from) {
      // Events of this process that are in no row yet become a row. It is applied later like a row of another process.
      const taken: NamedEntries[] = [];
      try {
        for (const _ of models.restore(states, taken)) await yieldToCalls();
      } finally {
        // After a failure too: the models that were restored before it have these events no more.
        addRow(taken);
      }
      reader.beginAfter(from);
    },
  };
}

/** The position of this process in the log. */
function createLogReader(store: Store) {
  const reader = {
    sequence: 0,
    hasLostRows: false,
    /** The next rows; an empty list after the last one, or when rows before them are gone. */
    async readNext(): Promise<LogRow[]> {
      const rows = await listLogRows(store, reader.sequence);
      reader.hasLostRows = rows[0] !== undefined && rows[0].first > reader.sequence + 1;
      return reader.hasLostRows ? [] : rows;
    },
    beginAfter(sequence: number): void {
      reader.sequence = sequence;
      reader.hasLostRows = false;
    },
  };
  return reader;
}

async function applyRow(
  { models, world }: { readonly models: SharedModels; readonly world: Pick<World, 'nowMs'> },
  { content, sequence }: LogRow,
  isOwn: boolean,
): Promise<AppliedRow> {
  const targetModels: string[] = [];
  const row = { isOwn, bytes: content.length, targetModels };
  try {
    const chunk = decodeChunk(content);
    for (const entries of chunk.models) {
      targetModels.push(await models.apply(entries, { isOwn, sequence }));
    }
    return { ...row, delayMs: Math.max(0, world.nowMs() - chunk.sinceMs) };
  } catch (failure) {
    return { ...row, delayMs: 0, failure };
  }
}

type SharedModels = ReturnType<typeof createSharedModels>;

/** The shared models by their names, opened when they are first needed. */
function createSharedModels(predictor: SwappablePredictor, world: World) {
  const models = new Map<string, SharedModel>();
  /** For each restored model, the last row of the log that is part of its saved state. */
  const restoredTo = new Map<string, number>();

  predictor.onForget((name) => {
    models.get(name)?.close();
    models.delete(name);
    restoredTo.delete(name);
  });

  /** Opens the shared model of a name, which is that of SHARED_NAME for a name without a live model of its own. */
  function find(targetModel: string): { readonly name: string; readonly shared: SharedModel } {
    const live = predictor.live(targetModel);
    const name = predictor.liveNameOf(targetModel);
    const shared = models.get(name) ?? createSharedModel(live, world);
    models.set(name, shared);
    return { name, shared };
  }

  const open = (targetModel: string) => find(targetModel).shared;

  /** Closes a shared model, and returns what was observed here and not taken before. */
  function close(name: string): NamedEntries[] {
    const taken = models.get(name)?.take(Number.POSITIVE_INFINITY) ?? [];
    models.get(name)?.close();
    models.delete(name);
    return taken.map((entries) => ({ targetModel: name, ...entries }));
  }

  return {
    open,
    countPending: () => [...models.values()].reduce((sum, shared) => sum + shared.countPending(), 0),
    take(limit: number): NamedEntries[] {
      const taken: NamedEntries[] = [];
      let room = limit;
      for (const [targetModel, shared] of models) {
        for (const each of room > 0 ? shared.take(room) : []) {
          taken.push({ targetModel, ...each });
          room -= each.entries.length;
        }
      }
      return taken;
    },
    /** Returns the name of the live model that the entries change. */
    async apply(
      { targetModel, ...entries }: NamedEntries,
      { isOwn, sequence }: { readonly isOwn: boolean; readonly sequence: number },
    ): Promise<string> {
      const { name, shared } = find(targetModel);
      if (sequence <= (restoredTo.get(name) ?? 0)) return name;
      for (const _ of shared.apply(entries, isOwn && name === targetModel)) await yieldToCalls();
      return name;
    },
    /** Restores a model in each step, and adds to `taken` what was observed here and not taken before. */
    *restore(states: readonly NamedLiveState[], taken: NamedEntries[]): Generator<void> {
      restoredTo.clear();
      // The list begins with the newest states. They are opened last, so that they are the last to give way to other names.
      for (const { targetModel, saved, sequence } of states.toReversed()) {
        const live = predictor.live(targetModel);
        if (predictor.liveNameOf(targetModel) !== targetModel) continue;
        taken.push(...close(targetModel));
        live.restore(saved);
        restoredTo.set(targetModel, sequence);
        // Opened now: its means are shared from the next swap on, even if no report comes before that.
        open(targetModel);
        yield;
      }
      taken.push(...[...models.keys()].filter((name) => !restoredTo.has(name)).flatMap(close));
    },
  };
}
