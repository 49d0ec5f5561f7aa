/** Finds a capacity in a separate process with a time limit, and refuses a second request meanwhile (429). */
import { Failure } from '../../errors.ts';
import { askWithin, createBackgroundProcess } from '../../workers/background-process.ts';
import type { CapacityAnswer, CapacityFound, CapacityOrder, CapacityPlace } from './read-capacity.ts';

/** Throws `too_many` while another capacity is being found. */
export type AskCapacity = (order: CapacityOrder) => Promise<CapacityFound>;

const LIMIT = {
  maxMs: 120_000,
  describe: (seconds: number) => `Cannot find the capacity: it took longer than ${seconds} s; name fewer servers`,
  field: 'servers',
};

/** One at a time, because each takes a processor for seconds. The process ends after its answer. */
export function createCapacityAsker(place: CapacityPlace['place']): AskCapacity {
  let isBusy = false;
  return async (order) => {
    if (isBusy)
      throw new Failure('too_many', 'Cannot find the capacity: another one is being found', { retryAfterSeconds: 5 });
    isBusy = true;
    const background = createBackgroundProcess(new URL('./capacity-process.ts', import.meta.url));
    try {
      const answer = await askWithin<CapacityOrder & CapacityPlace, CapacityAnswer>(
        background,
        { ...order, place },
        LIMIT,
      );
      if ('refusal' in answer) throw new Failure(answer.refusal.code, answer.refusal.message, answer.refusal.details);
      return answer;
    } finally {
      background.stop();
      isBusy = false;
    }
  };
}
