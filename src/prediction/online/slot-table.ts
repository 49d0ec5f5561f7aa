/** The slots of a live model, opened when a call first needs them, and the swap of the learned model behind them. */
import type { LatencyModel } from '../model/model.ts';
import type { SlotEvaluator } from '../model/slot-evaluator.ts';
import { normalizePodType } from '../schema/pod-type.ts';
import { introduceServers } from './live-offsets.ts';
import { createLiveSlot, createPodTypeEvaluator, FIRST_CAPACITY, type LiveSlot } from './live-slot.ts';
import type { PodTypeNumbers } from './pod-type-numbers.ts';
import type { ResidualTracker } from './residual-tracker.ts';

export interface SlotTable {
  readonly model: LatencyModel;
  /** By the keys under which they are saved. */
  readonly slots: ReadonlyMap<string, LiveSlot>;
  /** The slot that answers for this pod type, with room for so many rows. */
  find(podType: string, count: number): LiveSlot;
  /** Opens the slot of a key that was saved. */
  ensure(key: string): void;
  /** Builds what the next model needs, slot by slot, and swaps in the last step. Must be run to its end. */
  prepareSwap(next: LatencyModel): Generator<void, void>;
}

/** The key of the slot that answers for every pod type without one; no pod type can be it. */
const WHOLE = '\0whole';

export interface SlotTableOptions {
  readonly tracker: ResidualTracker;
  readonly podTypes: PodTypeNumbers;
}

export function createSlotTable(initial: LatencyModel, { tracker, podTypes }: SlotTableOptions): SlotTable {
  const slots = new Map<string, LiveSlot>();
  let model = initial;
  /** Evaluators of the model for slots that are not open yet. */
  let ready = new Map<string, SlotEvaluator>();
  introduceOffsets(initial, { tracker, podTypes });
  tracker.servers.onForget((server) => {
    for (const slot of slots.values()) slot.forgetServer(server);
  });

  /** Pod types without models of their own, beyond the first few, share the slot of the whole model. */
  function slotKey(podType: string): string {
    const name = normalizePodType(podType);
    return model.slots.has(name) || podTypes.isKnown(name) ? name : WHOLE;
  }

  function openSlot(key: string, podType: string, count: number): LiveSlot {
    const evaluator = takeReady(key, count) ?? createPodTypeEvaluator(model, podType, count);
    const slot = createLiveSlot(evaluator, { tracker, podType });
    slots.set(key, slot);
    return slot;
  }

  /** An evaluator that was built for a slot before it was opened; undefined if it is too small, or taken. */
  function takeReady(key: string, count: number): SlotEvaluator | undefined {
    const evaluator = ready.get(key);
    ready.delete(key);
    return evaluator !== undefined && evaluator.capacity >= count ? evaluator : undefined;
  }

  function swap(next: LatencyModel): void {
    model = next;
    introduceOffsets(next, { tracker, podTypes });
    // A call since its evaluator was prepared may have opened the slot, or made it grow.
    for (const [key, slot] of slots)
      slot.replaceModel(takeReady(key, slot.capacity) ?? createPodTypeEvaluator(next, podTypeOf(key), slot.capacity));
  }

  return {
    get model() {
      return model;
    },
    slots,
    find(podType, count) {
      const key = slotKey(podType);
      const known = slots.get(key);
      if (known === undefined) return openSlot(key, podType, count);
      if (known.capacity < count) known.grow(createPodTypeEvaluator(model, podType, count));
      return known;
    },
    ensure(key) {
      if (!slots.has(key)) openSlot(key, podTypeOf(key), 1);
    },
    *prepareSwap(next) {
      const prepared = new Map<string, SlotEvaluator>();
      for (const key of new Set([WHOLE, ...next.slots.keys(), ...slots.keys()])) {
        const capacity = slots.get(key)?.capacity ?? FIRST_CAPACITY;
        prepared.set(key, createPodTypeEvaluator(next, podTypeOf(key), capacity));
        yield;
      }
      ready = prepared;
      swap(next);
    },
  };
}

function podTypeOf(key: string): string {
  return key === WHOLE ? '' : key;
}

/** Registers the servers and pod types that the model knows, before the first of their requests. */
function introduceOffsets({ whole, slots }: LatencyModel, { tracker, podTypes }: SlotTableOptions): void {
  for (const { ttft, tpot } of [whole, ...slots.values()])
    for (const { offsets } of [ttft, tpot].filter((target) => target !== undefined)) {
      for (const podType of offsets.podTypes.keys()) podTypes.register(podType);
      introduceServers(offsets, tracker.servers);
    }
}
