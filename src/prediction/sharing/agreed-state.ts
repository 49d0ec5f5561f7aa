/**
 * A saved live model as all processes agree on it: where events of this process are on top of the base of a group, the
 * base is saved. Those events are in the log later, behind what is saved.
 */
import { EXPERT_COUNT } from '../online/experts.ts';
import { QUANTILE_LEVELS } from '../online/intervals/conformal.ts';
import type { SavedLiveModel, SavedServer, SavedSlot, SavedTarget } from '../online/saved-live-model.ts';
import { TARGETS, type Target } from '../schema/observation-table.ts';
import type { SharedModel } from './shared-model.ts';

type FindBase = SharedModel['findBase'];

export function toAgreedState(saved: SavedLiveModel, findBase: FindBase): SavedLiveModel {
  return {
    ...saved,
    state: agreeOnMeans(saved, findBase),
    slots: saved.slots.map((slot) => agreeOnSlot(slot, findBase)),
    servers: agreeOnServers(saved.servers, findBase),
  };
}

type SavedState = SavedLiveModel['state'];

/** The means of pod types stand one after the other by their numbers, which begin at 1; 0 is of those without one. */
function agreeOnMeans({ state, podTypes }: SavedLiveModel, findBase: FindBase): SavedState {
  const stride = state.model.sums.length;
  const model = copy(state.model);
  const ofPodTypes = copy(state.podTypes);
  for (const target of TARGETS) {
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
  readonly target: Target;
  readonly at: number;
}

function placeMeans({ sums, weights }: MutableMeans, { target, at }: Place, base: Float64Array | undefined): void {
  if (base === undefined) return;
  const columns = base.length / 2;
  const start = at + (target === 'ttft' ? 0 : columns);
  for (let c = 0; c < columns; c++) {
    sums[start + c] = base[c]!;
    weights[start + c] = base[columns + c]!;
  }
}

function agreeOnSlot(slot: SavedSlot<SavedTarget>, findBase: FindBase): SavedSlot<SavedTarget> {
  const agree = (target: Target): SavedTarget => {
    const base = findBase({ kind: 'slot', target, slot: slot.podType, server: '' });
    if (base === undefined) return slot[target];
    const sums = [...base.sums];
    const levelsStart = EXPERT_COUNT + 1;
    const coveragesStart = levelsStart + QUANTILE_LEVELS.length;
    const latenessAt = coveragesStart + QUANTILE_LEVELS.length;
    return {
      selector: { losses: sums.slice(0, EXPERT_COUNT), count: sums[EXPERT_COUNT]! },
      quantiles: {
        residuals: base.residuals?.scaled ?? [],
        levels: sums.slice(levelsStart, coveragesStart),
        coverages: sums.slice(coveragesStart, latenessAt),
      },
      logRatios: base.residuals?.logRatios ?? [],
      excessesMs: base.residuals?.excessesMs ?? [],
      lateness: sums[latenessAt]!,
    };
  };
  return { podType: slot.podType, ttft: agree('ttft'), tpot: agree('tpot') };
}

function* agreeOnServers(servers: Iterable<SavedServer>, findBase: FindBase): Generator<SavedServer> {
  for (const server of servers) yield agreeOnServer(server, findBase);
}

function agreeOnServer({ address, means, slots }: SavedServer, findBase: FindBase): SavedServer {
  const agreed = copy(means);
  for (const target of TARGETS) {
    const base = findBase({ kind: 'server means', target, slot: null, server: address });
    placeMeans(agreed, { target, at: 0 }, base?.sums);
  }
  const agree = (slot: SavedServer['slots'][number], target: Target) => {
    const sums = findBase({ kind: 'server', target, slot: slot.podType, server: address })?.sums;
    if (sums === undefined) return slot[target];
    const numbers = [...sums];
    return {
      trust: { losses: numbers.slice(0, EXPERT_COUNT), count: numbers[EXPERT_COUNT]! },
      corrections: numbers.slice(EXPERT_COUNT + 1),
    };
  };
  const ofSlots = slots.map((slot) => ({
    podType: slot.podType,
    ttft: agree(slot, 'ttft'),
    tpot: agree(slot, 'tpot'),
  }));
  return { address, means: agreed, slots: ofSlots };
}
