import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import fc from 'fast-check';
import { evaluate } from '../evaluation/protocols.ts';
import { HISTORY_COLUMNS } from '../schema/columns.ts';
import type { ObservationTable } from '../schema/observation-table.ts';
import { DEFAULT_TRAINING } from '../training/train-model.ts';
import { readTable } from './read-table.ts';

interface Request {
  readonly run: string;
  readonly server: string;
  readonly start_ms: number;
  readonly first_token_ms: number;
  readonly end_ms: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
}

async function rebuild(requests: readonly object[]): Promise<{ table: ObservationTable; reasons: string[] }> {
  const text = requests.map((request) => JSON.stringify(request)).join('\n');
  const { table, refusals } = await readTable(['-'], {
    format: 'requests',
    kvCapacityTokens: 10_000,
    targetModel: 'm',
    stdin: Readable.from([Buffer.from(text)]),
  });
  return { table, reasons: refusals.map((refusal) => refusal.reason) };
}

function request(start: number, firstToken: number, end: number, of: Partial<Request> = {}): Request {
  return {
    run: 'a',
    server: 's',
    start_ms: start,
    first_token_ms: firstToken,
    end_ms: end,
    input_tokens: 1000,
    output_tokens: 11,
    ...of,
  };
}

test('the load of a start counts who waits and who runs on the same server of the same run', async () => {
  const { table } = await rebuild([
    request(0, 100, 1000),
    request(50, 400, 900),
    request(200, 500, 1200),
    request(210, 300, 400, { server: 'other' }),
    request(220, 300, 400, { run: 'b' }),
    request(1100, 1300, 1400),
  ]);
  const loads = Array.from({ length: table.count }, (_, i) => [
    table.runs[table.run[i]!],
    table.numRequestWaiting[i],
    table.numRequestRunning[i],
  ]);
  assert.deepEqual(loads, [
    ['a', 0, 0],
    ['a', 1, 0],
    ['a', 1, 1],
    ['a', 0, 0],
    ['a', 0, 1],
    ['b', 0, 0],
  ]);
  assert.equal(table.ttftMs[0], 100);
  assert.equal(table.tpotMs[0], 90);
  assert.deepEqual(table.servers, ['a/s', 'a/other', 'b/s']);
  // The first request runs since 100 ms with its 1,000 tokens, the second waits with as many.
  assert.ok(table.inflightTokens[2]! >= 2000 && table.inflightTokens[2]! < 2010);
});

const impossible: [title: string, change: Partial<Request>, reason: string][] = [
  ['a first token before the start', { first_token_ms: 9 }, 'first_token_ms must be after start_ms'],
  ['a missing server', { server: '' }, 'server must be present'],
  ['an end before the first token', { end_ms: 15 }, 'end_ms must not be before first_token_ms'],
];
for (const [title, change, reason] of impossible)
  test(`${title} is refused`, async () => {
    const { table, reasons } = await rebuild([request(0, 100, 1000), { ...request(10, 20, 30), ...change }]);
    assert.deepEqual([table.count, reasons], [1, [reason]]);
  });

const times = fc.tuple(fc.nat(5000), fc.nat(2000), fc.nat(3000));

test('what comes later never changes the load of an earlier start', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(times, { minLength: 2, maxLength: 20 }), fc.nat(5000), async (drawn, cut) => {
      const all = drawn.map(([start, ttft, rest]) => request(start, start + ttft + 1, start + ttft + rest + 2));
      // Everything after the cut happens otherwise: those under way last longer, later ones are gone.
      const other = all
        .filter((each) => each.start_ms <= cut)
        .map((each) => ({
          ...each,
          first_token_ms: each.first_token_ms > cut ? each.first_token_ms + 777 : each.first_token_ms,
          end_ms: each.end_ms > cut ? each.end_ms + 7777 : each.end_ms,
          output_tokens: each.end_ms > cut ? 99 : each.output_tokens,
        }));
      const [before, after] = [(await rebuild(all)).table, (await rebuild(other)).table];
      for (let i = 0; i < after.count; i++)
        for (const name of [
          'numRequestWaiting',
          'numRequestRunning',
          'kvCacheUsage',
          'inflightTokens',
          ...HISTORY_COLUMNS,
        ] as const)
          assert.equal(after[name][i], before[name][i]);
    }),
    { numRuns: 40 },
  );
});

test('requests that start at the same instant do not see each other', async () => {
  const { table } = await rebuild([request(100, 200, 900), request(100, 300, 900), request(101, 300, 900)]);
  assert.deepEqual([...table.numRequestWaiting.subarray(0, 3)], [0, 0, 2]);
  assert.deepEqual([...table.waitingTokens.subarray(0, 3)], [Number.NaN, Number.NaN, 2000]);
});

test('cached tokens of a log are the share of the prompt that is in the prefix cache', async () => {
  const { table } = await rebuild([{ ...request(0, 10, 90), cached_tokens: 250 }, request(20, 30, 90)]);
  assert.deepEqual([...table.prefixCacheScore.subarray(0, 2)], [0.25, 0]);
});

test('runs that are held out are judged, and an unknown run is refused', async () => {
  const runs = ['a', 'b', 'c'].flatMap((run) =>
    Array.from({ length: 40 }, (_, i) => request(i * 100, i * 100 + 50 + (i % 7), i * 100 + 500, { run })),
  );
  const { table } = await rebuild(runs);
  const options = { parameters: DEFAULT_TRAINING, onProgress: () => {} };
  assert.equal(evaluate('leave-run-out', table, { ...options, holdOut: ['b'] }).ttft.length, 40);
  assert.equal(evaluate('leave-run-out', table, options).ttft.length, 120);
  assert.throws(() => evaluate('leave-run-out', table, { ...options, holdOut: ['z'] }), /no row is of them: z/);
});
