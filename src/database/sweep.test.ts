import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Failure } from '../errors.ts';
import { repeatBatches, SWEEP_BATCH, SWEEP_WITHOUT_PAUSES, sweepEach } from './sweep.ts';

/** The limits of the batches that delete `rows`, each of which takes a given time. */
async function listLimits(rows: number, tookMs: (limit: number) => number): Promise<number[]> {
  const limits: number[] = [];
  let [left, nowMs] = [rows, 0];
  const count = await repeatBatches({ ...SWEEP_WITHOUT_PAUSES, monotonicMs: () => nowMs }, async (limit) => {
    limits.push(limit);
    nowMs += tookMs(limit);
    const deleted = Math.min(left, limit);
    left -= deleted;
    return deleted;
  });
  assert.equal(count, rows);
  return limits;
}

test('repeatBatches() deletes more at a time while a batch is quick, up to a bound', async () => {
  assert.deepEqual(await listLimits(1500, () => 1), [32, 64, 128, 256, SWEEP_BATCH, SWEEP_BATCH, SWEEP_BATCH]);
});

test('repeatBatches() deletes fewer at a time when a batch takes long, as with large rows', async () => {
  assert.deepEqual(await listLimits(60, (limit) => limit * 50), [32, 16, 8, 4, 4]);
  assert.deepEqual(await listLimits(63, () => 300), [32, 16, 8, 4, 2, 1, 1]);
});

test('sweepEach() sweeps the kinds after one that fails, and reports that one', async () => {
  const failures: unknown[] = [];
  const sweeping = { ...SWEEP_WITHOUT_PAUSES, onFailure: (...failure: unknown[]) => void failures.push(failure) };
  const locked = new Error('The table is locked');
  const counts = await sweepEach(sweeping, {
    codes: async () => 1,
    tickets: () => Promise.reject(locked),
    sessions: async () => 3,
  });
  assert.deepEqual(counts, { codes: 1, tickets: 0, sessions: 3 });
  assert.deepEqual(failures, [['tickets', locked]]);
});

const refuse = async (): Promise<number> => {
  throw new Failure('unavailable', 'Cannot use the database right now');
};

test('sweepEach() takes `unavailable` of one kind for a failure of that kind, and sweeps the others', async () => {
  const failures: string[] = [];
  const sweeping = { ...SWEEP_WITHOUT_PAUSES, onFailure: (kind: string) => void failures.push(kind) };
  const sweeps = { codes: async () => 1, tickets: refuse, sessions: async () => 3 };
  assert.deepEqual(await sweepEach(sweeping, sweeps), { codes: 1, tickets: 0, sessions: 3 });
  assert.deepEqual(failures, ['tickets']);
});

test('sweepEach() reports all kinds from one that is `unavailable` to the last, since they may be damaged', async () => {
  const failures: string[] = [];
  const sweeping = { ...SWEEP_WITHOUT_PAUSES, onFailure: (kind: string) => void failures.push(kind) };
  const sweeps = { codes: async () => 1, tickets: refuse, sessions: refuse };
  assert.deepEqual(await sweepEach(sweeping, sweeps), { codes: 1, tickets: 0, sessions: 0 });
  assert.deepEqual(failures, ['tickets', 'sessions']);
});

test('sweepEach() throws `unavailable` of all kinds, and reports none of them', async () => {
  const onFailure = () => assert.fail('the database is away');
  const sweeping = { ...SWEEP_WITHOUT_PAUSES, onFailure };
  await assert.rejects(sweepEach(sweeping, { codes: refuse, tickets: refuse }), { code: 'unavailable' });
});

test('sweepEach() ends with its signal, which is no failure', async () => {
  const { signal } = new AbortController();
  const aborted = AbortSignal.abort(new Error('The lease was lost'));
  const sweeps = (ended: AbortSignal) => ({
    codes: async () => {
      ended.throwIfAborted();
      return 1;
    },
    sessions: async () => 3,
  });
  assert.deepEqual(await sweepEach({ ...SWEEP_WITHOUT_PAUSES, signal }, sweeps(signal)), { codes: 1, sessions: 3 });
  const onFailure = () => assert.fail('an end is no failure');
  await assert.rejects(
    sweepEach({ ...SWEEP_WITHOUT_PAUSES, signal: aborted, onFailure }, sweeps(aborted)),
    /lease was lost/,
  );
});
