/** The process that computes capacities: it takes seconds, during which the service could answer no call. */
import { answerOrders } from '../../workers/background-process.ts';
import type { CapacityAnswer, CapacityOrder, CapacityPlace } from './read-capacity.ts';

answerOrders(async (order: CapacityOrder & CapacityPlace): Promise<CapacityAnswer> => {
  const { readCapacity } = await import('./read-capacity.ts');
  return await readCapacity(order);
});
