/** Capacities for the API and for pages: each is found in a process of its own, one at a time. */
import { Failure } from '../../errors.ts';
import { createBackgroundProcess } from '../../workers/background-process.ts';
import type { CapacityAnswer, CapacityFound, CapacityOrder, CapacityPlace } from './read-capacity.ts';

/** Throws `too_many` while another capacity is found. */
export type AskCapacity = (order: CapacityOrder) => Promise<CapacityFound>;

const MAX_FIND_MS = 120_000;

/** One at a time: each takes a processor for seconds. Its process ends with the answer. */
export function createCapacityAsker(place: CapacityPlace['place']): AskCapacity {
  let isBusy = false;
  return async (order) => {
    if (isBusy)
      throw new Failure('too_many', 'Cannot find the capacity: another one is being found', { retryAfterSeconds: 5 });
    isBusy = true;
    const background = createBackgroundProcess(new URL('./capacity-process.ts', import.meta.url));
    try {
      const answer = await background.ask<CapacityOrder & CapacityPlace, CapacityAnswer>(
        { ...order, place },
        AbortSignal.timeout(MAX_FIND_MS),
      );
      if ('refusal' in answer) throw new Failure(answer.refusal.code, answer.refusal.message, answer.refusal.details);
      return answer;
    } finally {
      background.stop();
      isBusy = false;
    }
  };
}
