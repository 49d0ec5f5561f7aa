/** Decides where files are read: in this process for a command, in a separate process for a service. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Failure } from '../../errors.ts';
import { askWithin, createBackgroundProcess } from '../../workers/background-process.ts';
import { type EvaluateFileOrder, evaluateFile, type FileEvaluation } from './evaluate-file.ts';
import type { FileAnswer, FileRequest } from './file-requests.ts';
import { type ImportedFile, type ImportFileOrder, readImportedFile } from './import-file.ts';

export interface FileReader {
  readImport(order: ImportFileOrder): Promise<ImportedFile>;
  evaluate(order: EvaluateFileOrder): Promise<FileEvaluation>;
}

export const HERE: FileReader = { readImport: async (order) => readImportedFile(order), evaluate: evaluateFile };

const LIMIT = {
  maxMs: 300_000,
  describe: (seconds: number) =>
    `Cannot read the file: it took longer than ${seconds} s; split it, or stop the service and use the command`,
};

/** One at a time, because each takes a processor for seconds. The process ends after its answer. */
export function createFileReader(): FileReader {
  let isBusy = false;
  const ask = async (order: FileRequest) => {
    if (isBusy)
      throw new Failure('too_many', 'Cannot read the file: another one is being read', { retryAfterSeconds: 5 });
    isBusy = true;
    const background = createBackgroundProcess(new URL('./file-process.ts', import.meta.url));
    try {
      const answer = await askWithin<FileRequest, FileAnswer>(background, order, LIMIT);
      if ('refusal' in answer) throw new Failure(answer.refusal.code, answer.refusal.message);
      return answer.answer;
    } finally {
      background.stop();
      isBusy = false;
    }
  };
  return {
    readImport: async (order) => (await ask({ kind: 'import', order })) as ImportedFile,
    evaluate: async (order) => (await ask({ kind: 'evaluate', order })) as FileEvaluation,
  };
}

/** Readers of observations take a path, because the file name can show the format and files may be large. */
export async function withFile<T>(file: Uint8Array, use: (path: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'trivet-upload-'));
  try {
    const path = join(folder, 'file');
    await writeFile(path, file, { mode: 0o600 });
    return await use(path);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
