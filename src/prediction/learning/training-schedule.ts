/** Decides when each model is trained: by the number of its fresh rows, by time, and on request after an alarm. */
import type { World } from '../../world.ts';
import type { FreshSamples } from '../observations/sample-count-store.ts';

export interface TrainingSchedule {
  /** Requests a training after an alarm. */
  request(targetModel: string): void;
  isDue(fresh: FreshSamples): boolean;
  /** Runs a training; further requests for the model then wait for a multiple of its duration. A failed training keeps its request. */
  run(targetModel: string, train: () => Promise<void>): Promise<void>;
}

interface ScheduleOptions {
  readonly world: Pick<World, 'nowMs' | 'monotonicMs'>;
  readonly refitRows: number;
  readonly refitSeconds: number;
}

/** Fewer fresh rows than this never cause a training. */
export const MIN_FRESH_ROWS = 50;
/**
 * After a training, alarms wait this many times as long as it took: a pool that changes all the time raises alarms all the time.
 * After a failed one, every cause of a training waits, so that a model whose trainings hang does not hold up the others.
 */
const COOLDOWN_FACTOR = 4;

export function createTrainingSchedule({ world, refitRows, refitSeconds }: ScheduleOptions): TrainingSchedule {
  const requests = createRequests();
  /** Until this time an alarm starts no training. */
  const cooldownEndsMs = new Map<string, number>();
  /** After a failed training, no training starts until this time. */
  const retryAtMs = new Map<string, number>();
  return {
    request: requests.add,
    isDue(fresh) {
      const { targetModel, count, lastTrainingMs } = fresh;
      const isRequested = requests.isOpen(fresh);
      if (count < MIN_FRESH_ROWS) return false;
      if (world.monotonicMs() < (retryAtMs.get(targetModel) ?? 0)) return false;
      if (lastTrainingMs === undefined || count >= refitRows) return true;
      if (isRequested && world.monotonicMs() >= (cooldownEndsMs.get(targetModel) ?? 0)) return true;
      // A training dated in the future was made while the clock was wrong, so the difference counts in both directions.
      return Math.abs(world.nowMs() - lastTrainingMs) >= refitSeconds * 1000;
    },
    async run(targetModel, train) {
      const beganMs = world.monotonicMs();
      const isRequested = requests.delete(targetModel);
      const findCooldownEnd = (): number => {
        const endedMs = world.monotonicMs();
        return endedMs + COOLDOWN_FACTOR * (endedMs - beganMs);
      };
      try {
        await train();
        retryAtMs.delete(targetModel);
        cooldownEndsMs.set(targetModel, findCooldownEnd());
      } catch (cause) {
        if (isRequested) requests.add(targetModel);
        retryAtMs.set(targetModel, findCooldownEnd());
        throw cause;
      }
    },
  };
}

/** The requests of this process. A training by another process fulfils those that were made before it. */
function createRequests() {
  /** The time of the last training when the request was first checked; empty before. */
  const requested = new Map<string, { readonly lastTrainingMs?: number | undefined }>();
  return {
    add: (targetModel: string): void => void requested.set(targetModel, {}),
    delete: (targetModel: string): boolean => requested.delete(targetModel),
    /** Whether there is a request that no training has fulfilled. */
    isOpen({ targetModel, lastTrainingMs }: FreshSamples): boolean {
      const request = requested.get(targetModel);
      if (request === undefined) return false;
      if (!('lastTrainingMs' in request)) requested.set(targetModel, { lastTrainingMs });
      else if (request.lastTrainingMs !== lastTrainingMs) return !requested.delete(targetModel);
      return true;
    },
  };
}
