/** Runs the process that computes capacities, so that calls do not wait meanwhile. */
import { answerOrders } from '../../workers/background-process.ts';
import type { CapacityAnswer, CapacityOrder, CapacityPlace } from './read-capacity.ts';

answerOrders(async (order: CapacityOrder & CapacityPlace): Promise<CapacityAnswer> => {
  const { readCapacity } = await import('./read-capacity.ts');
  return await readCapacity(order);
});
