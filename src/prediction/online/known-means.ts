/** Reads the mean residuals that a forecast depends on, and makes a forecast with those of an earlier moment. */
import type { PredictionTarget } from '../schema/observation-table.ts';
import type { MeansOwner, ResidualTracker, ServerKey } from './residual-tracker.ts';

/** The means of a server, of its pod type and of all pod types, each as `ResidualTracker.readTarget` returns them. */
export type KnownMeans = Readonly<Record<MeansOwner['kind'], Float64Array>>;

/** A server and a target, whose forecasts depend on these means. */
export interface MeansKey {
  readonly key: ServerKey;
  readonly target: PredictionTarget;
}

const NO_MEANS = new Float64Array(0);

export function readKnownMeans(tracker: ResidualTracker, { key, target }: MeansKey): KnownMeans {
  const { server, podType } = key;
  return {
    server: server === -1 ? NO_MEANS : tracker.readTarget({ kind: 'server', number: server }, target),
    podType: tracker.readTarget({ kind: 'podType', number: podType }, target),
    model: tracker.readTarget({ kind: 'model', number: 0 }, target),
  };
}

/** For each owner, what was known at the earlier moment; absent is one whose means are as they were. */
export type EarlierMeans = Partial<Record<MeansOwner['kind'], { readonly means: KnownMeans }>>;

/** Returns what `read` returns while the tracker has the means of an earlier moment. */
export function withMeans<T>(
  tracker: ResidualTracker,
  { server, podType, model, ...of }: MeansKey & EarlierMeans,
  read: () => T,
): T {
  const now = readKnownMeans(tracker, of);
  writeKnownMeans(tracker, of, {
    server: server?.means.server ?? now.server,
    podType: podType?.means.podType ?? now.podType,
    model: model?.means.model ?? now.model,
  });
  try {
    return read();
  } finally {
    writeKnownMeans(tracker, of, now);
  }
}

function writeKnownMeans(tracker: ResidualTracker, { key, target }: MeansKey, means: KnownMeans): void {
  const { server, podType } = key;
  if (server !== -1) tracker.writeTarget({ kind: 'server', number: server }, target, means.server);
  tracker.writeTarget({ kind: 'podType', number: podType }, target, means.podType);
  tracker.writeTarget({ kind: 'model', number: 0 }, target, means.model);
}
