/** Files of tests that run on SQLite by themselves, once more on PostgreSQL. */
import { test } from 'node:test';
import { findReasonToSkip } from './engines.ts';

/** Imports these files of `src/`, each without `.test.ts`. */
export async function runOnPostgres(files: readonly string[]): Promise<void> {
  process.env.TRIVET_TEST_ENGINE = 'postgres';
  const reason = findReasonToSkip('postgres');
  if (reason !== false) test('pages on PostgreSQL', { skip: reason }, () => {});
  else for (const file of files) await import(`../../../src/${file}.test.ts`);
}
