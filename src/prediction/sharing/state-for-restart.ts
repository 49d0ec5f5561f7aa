/**
 * Makes the state that is saved for a restart, without events that the log still has. Each group is saved as its base, on which
 * all processes agree. The events of this process on top of it are appended to the log later, and a restart reads the log after
 * the saved state.
 */
import { rangeOfTarget } from '../online/residual-tracker.ts';
import type { SavedLiveModel, SavedServer, SavedSlot, SavedTarget } from '../online/saved-live-model.ts';
import { PREDICTION_TARGETS, type PredictionTarget } from '../schema/observation-table.ts';
import type { SharedModel } from './shared-model.ts';
import { readExperts, readQuantiles, SERVER_SUMS, SLOT_SUMS } from './sum-layout.ts';

type FindBase = SharedModel['findBase'];

export function toStateForRestart(saved: SavedLiveModel, findBase: FindBase): SavedLiveModel {
  return {
    ...saved,
    state: agreeOnMeans(saved, findBase),
    slots: saved.slots.map((slot) => agreeOnSlot(slot, findBase)),
    servers: agreeOnServers(saved.servers, findBase),
  };
}

type SavedState = SavedLiveModel['state'];

/** `ofPodTypes` has the means of one pod type after the other, by their numbers; 0 is shared by all pod types without a number. */
function agreeOnMeans({ state, podTypes }: SavedLiveModel, findBase: FindBase): SavedState {
  const stride = state.model.sums.length;
  const model = copy(state.model);
  const ofPodTypes = copy(state.podTypes);
  for (const target of PREDICTION_TARGETS) {
    const find = (kind: 'model means' | 'pod type means', slot: string | null) =>
      findBase({ kind, target, slot, server: '' })?.sums;
    placeMeans(model, { target, at: 0 }, find('model means', null));
    for (const [i, slot] of [null, ...podTypes].entries())
      placeMeans(ofPodTypes, { target, at: i * stride }, find('pod type means', slot));
  }
  return { model, podTypes: ofPodTypes };
}

interface MutableMeans {
  sums: number[];
  weights: number[];
}

function copy({ sums, weights }: SavedState['model']): MutableMeans {
  return { sums: [...sums], weights: [...weights] };
}

interface Place {
  readonly target: PredictionTarget;
  /** Where the means of one owner begin. */
  readonly at: number;
}

/** `base` is as `ResidualTracker.readTarget` returns it: the sums, then the weights. */
function placeMeans({ sums, weights }: MutableMeans, { target, at }: Place, base: Float64Array | undefined): void {
  if (base === undefined) return;
  const { start, length } = rangeOfTarget(target);
  for (let c = 0; c < length; c++) {
    sums[at + start + c] = base[c]!;
    weights[at + start + c] = base[length + c]!;
  }
}

function agreeOnSlot(slot: SavedSlot<SavedTarget>, findBase: FindBase): SavedSlot<SavedTarget> {
  const agree = (target: PredictionTarget): SavedTarget => {
    const base = findBase({ kind: 'slot', target, slot: slot.podType, server: '' });
    if (base === undefined) return slot[target];
    const { sums, residuals } = base;
    return {
      selector: readExperts(SLOT_SUMS, sums),
      quantiles: { residuals: residuals?.scaled ?? [], ...readQuantiles(sums) },
      logRatios: residuals?.logRatios ?? [],
      excessesMs: residuals?.excessesMs ?? [],
      lateness: SLOT_SUMS.read(sums, 'feedbackDelay')[0]!,
      reportDelay: SLOT_SUMS.read(sums, 'reportDelay')[0]!,
      learnedCorrections: SLOT_SUMS.read(sums, 'learnedCorrections'),
    };
  };
  return { podType: slot.podType, ttft: agree('ttft'), tpot: agree('tpot') };
}

function* agreeOnServers(servers: Iterable<SavedServer>, findBase: FindBase): Generator<SavedServer> {
  for (const server of servers) yield agreeOnServer(server, findBase);
}

function agreeOnServer({ means, slots, ...server }: SavedServer, findBase: FindBase): SavedServer {
  const { address } = server;
  const agreed = copy(means);
  for (const target of PREDICTION_TARGETS) {
    const base = findBase({ kind: 'server means', target, slot: null, server: address });
    placeMeans(agreed, { target, at: 0 }, base?.sums);
  }
  const agree = (slot: SavedServer['slots'][number], target: PredictionTarget) => {
    const sums = findBase({ kind: 'server', target, slot: slot.podType, server: address })?.sums;
    if (sums === undefined) return slot[target];
    return { trust: readExperts(SERVER_SUMS, sums), corrections: SERVER_SUMS.read(sums, 'corrections') };
  };
  const ofSlots = slots.map((slot) => ({
    podType: slot.podType,
    ttft: agree(slot, 'ttft'),
    tpot: agree(slot, 'tpot'),
  }));
  return { ...server, means: agreed, slots: ofSlots };
}
