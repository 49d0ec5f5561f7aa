/** The process in which files from callers are read: seconds of computation, which would hold up every call. */
import { answerOrders } from '../../workers/background-process.ts';
import type { FileAnswer, FileOrder } from './file-orders.ts';

answerOrders(async (order: FileOrder): Promise<FileAnswer> => {
  const { answerFileOrder } = await import('./file-orders.ts');
  return await answerFileOrder(order);
});
