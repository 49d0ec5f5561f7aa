/** Runs the process that reads files from callers, so that other calls do not wait meanwhile. */
import { answerOrders } from '../../workers/background-process.ts';
import type { FileAnswer, FileRequest } from './file-requests.ts';

answerOrders(async (order: FileRequest): Promise<FileAnswer> => {
  const { answerFileRequest } = await import('./file-requests.ts');
  return await answerFileRequest(order);
});
