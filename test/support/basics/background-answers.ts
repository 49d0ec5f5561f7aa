/** The tests of `createBackgroundProcess` run this process: it answers, refuses, dies or continues, as requested. */
import { getPriority } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { answerOrders } from '../../../src/workers/background-process.ts';

export interface TestOrder {
  readonly does: 'answer' | 'refuse' | 'die' | 'work on';
  readonly bytes?: Uint8Array;
}

export interface TestAnswer {
  readonly pid: number;
  readonly niceness: number;
  readonly bytes: Uint8Array | undefined;
}

answerOrders(async ({ does, bytes }: TestOrder): Promise<TestAnswer> => {
  if (does === 'refuse') throw new RangeError('Cannot do that');
  if (does === 'die') {
    process.stderr.write('famous last words');
    process.exit(3);
  }
  // The parent ends this process earlier.
  if (does === 'work on') await sleep(600_000);
  return { pid: process.pid, niceness: getPriority(), bytes };
});
