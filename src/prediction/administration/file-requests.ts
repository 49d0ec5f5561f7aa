/**
 * Declares and answers the requests to the process that reads files. A failure is returned as a value, since an error thrown in
 * another process would lose its code.
 */
import { type FailureCode, isFailure } from '../../errors.ts';
import { type EvaluateFileOrder, evaluateFile, type FileEvaluation } from './evaluate-file.ts';
import { type ImportedFile, type ImportFileOrder, readImportedFile } from './import-file.ts';

export type FileRequest =
  | { readonly kind: 'import'; readonly order: ImportFileOrder }
  | { readonly kind: 'evaluate'; readonly order: EvaluateFileOrder };

export type FileAnswer =
  | { readonly answer: ImportedFile | FileEvaluation }
  | { readonly refusal: { readonly code: FailureCode; readonly message: string } };

export async function answerFileRequest(asked: FileRequest): Promise<FileAnswer> {
  try {
    return { answer: asked.kind === 'import' ? readImportedFile(asked.order) : await evaluateFile(asked.order) };
  } catch (error) {
    if (!isFailure(error)) throw error;
    return { refusal: { code: error.code, message: error.message } };
  }
}
