/** The process in which capacities are found: seconds of computation, which would hold up every call. */
import { answerOrders } from '../../workers/background-process.ts';
import type { CapacityAnswer, CapacityOrder } from './read-capacity.ts';

answerOrders(async (order: CapacityOrder): Promise<CapacityAnswer> => {
  const { readCapacity } = await import('./read-capacity.ts');
  return await readCapacity(order);
});
