/**
 * Writes before, while and after flushes fail, and prints what each write was answered, a JSON array a line.
 * `FAILING_FLUSH=<file> node flush-writer.ts <data folder>`.
 */
import { rmSync, writeFileSync } from 'node:fs';
import { type Failure, isFailure } from '../../src/errors.ts';
import { insertNoteSql, insertPair } from '../support/store/note-store.ts';
import { openNoteStore } from './open-note-store.ts';

const flag = process.env.FAILING_FLUSH ?? '';
await using store = await openNoteStore({ dataDir: process.argv[2] ?? '', databaseUrl: undefined });

async function write(ids: readonly string[]): Promise<void> {
  const singles = ids.map((id) => store.write(insertNoteSql, [id, 1]));
  print(await Promise.allSettled(singles));
}

function print(outcomes: readonly PromiseSettledResult<unknown>[]): void {
  process.stdout.write(`${JSON.stringify(outcomes.map(describe))}\n`);
}

function describe(outcome: PromiseSettledResult<unknown>): string {
  if (outcome.status === 'fulfilled') return 'stored';
  if (!isFailure(outcome.reason)) return String(outcome.reason);
  const { code, details }: Failure = outcome.reason;
  return details.isUnknown === true ? `${code}, unknown` : code;
}

await write(['before']);
writeFileSync(flag, '');
await write(['alone']);
await write(['one', 'two', 'three']);
print(await Promise.allSettled([store.call(insertPair, 'pair')]));
rmSync(flag);
await write(['after']);
