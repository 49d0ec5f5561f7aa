/** Notes the state that forecasts depend on before each observed time is learned, and forecasts with the state of an earlier moment. */
import type { PredictionTarget } from '../schema/observation-table.ts';
import type { ExpertWeights } from './expert-weights.ts';
import { EXPERT_COUNT } from './experts.ts';
import {
  type DatedState,
  readServerState,
  readSlotState,
  SERVER_STATE_LENGTH,
  SLOT_STATE_LENGTH,
  writeServerState,
  writeSlotState,
} from './intervals/dated-state.ts';
import { createMomentRing, type LaterNotes, type MomentRing, NONE, type Parts } from './moments/moment-ring.ts';
import { MEANS_DECAYS, type MeansOwner, type ResidualTracker, type ServerKey } from './residual-tracker.ts';
import type { TargetPredictor } from './target-predictor.ts';

type OwnerKind = MeansOwner['kind'];

/** The server and the target of a forecast, which determine the means that it depends on. */
export interface MeansKey {
  readonly key: ServerKey;
  readonly target: PredictionTarget;
}

/** The states of a slot and of a server end with the weights of the experts; the means are those of `OWNER_KINDS`. */
type NotePart = 'slot' | 'server' | 'means';
export type Moments = MomentRing<NotePart>;

const OWNER_KINDS: readonly OwnerKind[] = ['server', 'podType', 'model'];
/** How many numbers `ResidualTracker.readTarget` returns. */
const MEANS_LENGTH = MEANS_DECAYS.length;
const NO_MEANS = new Float64Array(MEANS_LENGTH);
const NO_WEIGHTS = new Float64Array(EXPERT_COUNT).fill(Number.NaN);

export function createMoments(): Moments {
  return createMomentRing({
    slot: SLOT_STATE_LENGTH + EXPERT_COUNT,
    server: SERVER_STATE_LENGTH + EXPERT_COUNT,
    means: OWNER_KINDS.length * MEANS_LENGTH,
  });
}

/** Returns the present state, as the parts of a note. */
export function readKnown(
  { weights, intervals }: Pick<TargetPredictor, 'weights' | 'intervals'>,
  tracker: ResidualTracker,
  of: MeansKey,
): Parts<NotePart> {
  const { server } = of.key;
  const [ofSlot, ofServer] = [weights.weightsOf(-1), weights.weightsOf(server)];
  const { slot, server: atServer } = intervals.readState(server);
  return {
    slot: [...writeSlotState(slot), ...ofSlot],
    // A server without events of its own has the weights of its slot, also as of an earlier moment.
    server: [...writeServerState(atServer), ...(ofServer === ofSlot ? NO_WEIGHTS : ofServer)],
    means: readMeans(tracker, of),
  };
}

/** The means of a server, of its pod type and of all pod types. */
export function readMeans(tracker: ResidualTracker, of: MeansKey): Float64Array {
  const means = new Float64Array(OWNER_KINDS.length * MEANS_LENGTH);
  for (const [i, kind] of OWNER_KINDS.entries()) means.set(readOwner(tracker, of, kind), i * MEANS_LENGTH);
  return means;
}

/** The earlier state that a forecast uses in place of the present one. */
export interface KnownThen {
  readonly weights: readonly number[] | undefined;
  readonly state: DatedState;
}

interface AsOfDependencies {
  readonly tracker: ResidualTracker;
  readonly moments: Moments;
  /** The weights of the slot. */
  readonly experts: Pick<ExpertWeights, 'weightsOf'>;
}

/** Calls `read` while the tracker has the means of an earlier moment, and returns its result. */
export function readAsOf<T>(
  { tracker, moments, experts }: AsOfDependencies,
  { later, ...of }: MeansKey & { readonly later: LaterNotes },
  read: (known: KnownThen) => T,
): T {
  const now = OWNER_KINDS.map((kind) => readOwner(tracker, of, kind));
  for (const [i, kind] of OWNER_KINDS.entries()) {
    const number = later[`${kind}Means`];
    if (number === NONE) continue;
    const means = moments.read(number, 'means').subarray(i * MEANS_LENGTH, (i + 1) * MEANS_LENGTH);
    writeOwner(tracker, of, { kind, means });
  }
  try {
    const hasOwnWeights = experts.weightsOf(of.key.server) !== experts.weightsOf(-1);
    return read(readStates(moments, later, hasOwnWeights));
  } finally {
    for (const [i, kind] of OWNER_KINDS.entries()) writeOwner(tracker, of, { kind, means: now[i]! });
  }
}

function readStates(moments: Moments, later: LaterNotes, hasOwnWeights: boolean): KnownThen {
  const slot = later.slot === NONE ? undefined : moments.read(later.slot, 'slot');
  const server = later.server === NONE ? undefined : moments.read(later.server, 'server');
  const [ofSlot, ofServer] = [slot?.subarray(SLOT_STATE_LENGTH), server?.subarray(SERVER_STATE_LENGTH)].map(
    readWeights,
  );
  return {
    // A server without a later observed time still has its present weights.
    weights: hasOwnWeights && server === undefined ? undefined : (ofServer ?? ofSlot),
    state: { slot: slot && readSlotState(slot), server: server && readServerState(server) },
  };
}

function readWeights(weights: Float64Array | undefined): readonly number[] | undefined {
  return weights === undefined || Number.isNaN(weights[0]) ? undefined : [...weights];
}

function readOwner(tracker: ResidualTracker, { key, target }: MeansKey, kind: OwnerKind): Float64Array {
  return kind === 'server' && key.server === -1 ? NO_MEANS : tracker.readTarget(ownerOf(key, kind), target);
}

function writeOwner(
  tracker: ResidualTracker,
  { key, target }: MeansKey,
  { kind, means }: { readonly kind: OwnerKind; readonly means: Float64Array },
): void {
  if (kind !== 'server' || key.server !== -1) tracker.writeTarget(ownerOf(key, kind), target, means);
}

function ownerOf({ server, podType }: ServerKey, kind: OwnerKind): MeansOwner {
  return { kind, number: { server, podType, model: 0 }[kind] };
}
