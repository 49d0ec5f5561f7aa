/** Runs the process in which files from callers are read, so that no call waits for it. */
import { answerOrders } from '../../workers/background-process.ts';
import type { FileAnswer, FileOrder } from './file-orders.ts';

answerOrders(async (order: FileOrder): Promise<FileAnswer> => {
  const { answerFileOrder } = await import('./file-orders.ts');
  return await answerFileOrder(order);
});
