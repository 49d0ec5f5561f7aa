/** Groups points from the store into one value for each step of an accuracy chart. */
import type { Steps } from './accuracy-choice.ts';
import type { AccuracyPoint, TargetName } from './accuracy-views.ts';
import type { ModelView } from './model-views.ts';

export interface AccuracyStep {
  readonly startMs: number;
  /** The versions that predicted in this step. */
  readonly versions: readonly number[];
  readonly rows: number;
  /** Percent; null without reports. */
  readonly mape: number | null;
  readonly p90Coverage: number | null;
  /** The held-out MAPE of the version that was served at the end of the step. */
  readonly heldOutMape: number | null;
}

export interface StepsQuery {
  readonly steps: Steps;
  readonly target: TargetName;
  /** The pod type whose held-out scores are compared with; `all` if no pod type is chosen. */
  readonly podType: string;
}

export function tabulateSteps(
  points: readonly AccuracyPoint[],
  model: Pick<ModelView, 'promotions' | 'versions'>,
  { steps, target, podType }: StepsQuery,
): AccuracyStep[] {
  const { fromMs, stepMs, moments } = steps;
  const pointsByStep = Map.groupBy(points, ({ startMs }) => Math.floor((startMs - fromMs) / stepMs));
  return moments.map((startMs, at) => {
    const own = pointsByStep.get(at) ?? [];
    const version = findServedVersion(model.promotions, startMs + stepMs);
    return {
      startMs,
      versions: [...new Set(own.map((point) => point.version))],
      rows: own.reduce((sum, { scores }) => sum + scores.rows, 0),
      mape: averageRows(own.map(({ scores }) => ({ rows: scores.rows, value: scores.mape }))),
      p90Coverage: averageRows(own.map(({ scores }) => ({ rows: scores.rows, value: scores.p90Coverage }))),
      heldOutMape: findHeldOutMape(model.versions, { version, target, podType }),
    };
  });
}

/** Both scores are means over rows, so their mean, weighted by rows, is the score of all rows. */
export function averageRows(parts: readonly { readonly rows: number; readonly value: number | null }[]): number | null {
  const known = parts.filter(({ rows, value }) => rows > 0 && value !== null);
  const rows = known.reduce((sum, part) => sum + part.rows, 0);
  return rows === 0 ? null : known.reduce((sum, part) => sum + part.rows * part.value!, 0) / rows;
}

/** Undefined while no version was served and the prior answered. */
function findServedVersion(promotions: ModelView['promotions'], atMs: number): number | undefined {
  return promotions
    .filter((promotion) => promotion.atMs < atMs && (promotion.undoneAtMs === null || promotion.undoneAtMs >= atMs))
    .reduce<ModelView['promotions'][number] | undefined>(
      (newest, promotion) => (newest === undefined || promotion.atMs > newest.atMs ? promotion : newest),
      undefined,
    )?.version;
}

interface HeldOutQuery {
  readonly version: number | undefined;
  readonly target: TargetName;
  readonly podType: string;
}

/** A pod type that has no slot is predicted by the slot for all. */
function findHeldOutMape(versions: ModelView['versions'], { version, target, podType }: HeldOutQuery): number | null {
  const learned = versions.find((candidate) => candidate.version === version)?.learned ?? [];
  const ofTarget = learned.filter((part) => part.target === target);
  const part = ofTarget.find((one) => one.podType === podType) ?? ofTarget.find((one) => one.podType === 'all');
  return part?.validation?.mape ?? null;
}
