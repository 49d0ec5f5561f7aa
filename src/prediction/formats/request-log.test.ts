import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { reconstructLoads } from './request-load.ts';
import { type LoggedRequest, parseRequest } from './request-log.ts';

const ROW = {
  run: 'a',
  server: 's',
  start_ms: 1000,
  first_token_ms: 1200,
  end_ms: 2200,
  input_tokens: 500,
  output_tokens: 11,
};

test('a row of a log is read, with its numbers as numbers or as text, and any scalar as a name', () => {
  const request = {
    run: 'a',
    server: 's',
    startMs: 1000,
    firstTokenMs: 1200,
    endMs: 2200,
    inputTokens: 500,
    cachedTokens: 0,
    outputTokens: 11,
  };
  assert.deepEqual(parseRequest(ROW), { request });
  assert.deepEqual(parseRequest(Object.fromEntries(Object.entries(ROW).map(([key, value]) => [key, String(value)]))), {
    request,
  });
  assert.deepEqual(parseRequest({ ...ROW, run: 7, server: 0 }), { request: { ...request, run: '7', server: '0' } });
});

const refusals: [change: Record<string, unknown>, refusal: string][] = [
  [{ run: undefined }, 'run must be present'],
  [{ server: '' }, 'server must be present'],
  [{ start_ms: undefined }, 'start_ms must be present'],
  [{ end_ms: 'soon' }, 'end_ms must be a number'],
  [{ first_token_ms: null }, 'first_token_ms must be a finite number'],
  [{ input_tokens: -1 }, 'input_tokens must be 0 or more'],
  [{ output_tokens: 0 }, 'output_tokens must be 1 or more'],
  [{ first_token_ms: 1000 }, 'first_token_ms must be after start_ms'],
  [{ end_ms: 1100 }, 'end_ms must not be before first_token_ms'],
  [{ end_ms: 1200 }, 'end_ms must be after first_token_ms when output_tokens is more than 1'],
  [{ cached_tokens: 501 }, 'cached_tokens must be 0 to input_tokens'],
  [{ end_ms: 1e9 }, 'end_ms must be at most one day after start_ms'],
];
for (const [change, refusal] of refusals)
  test(`a row with ${JSON.stringify(change)} is refused: ${refusal}`, () =>
    assert.deepEqual(parseRequest({ ...ROW, ...change }), { refusal }));

function log(startMs: number, firstTokenMs: number, endMs: number, more: Partial<LoggedRequest> = {}): LoggedRequest {
  return {
    run: 'a',
    server: 's',
    startMs,
    firstTokenMs,
    endMs,
    inputTokens: 100,
    cachedTokens: 0,
    outputTokens: 11,
    ...more,
  };
}

test('a load counts who waits, who decodes, and the tokens of both', () => {
  const loads = reconstructLoads(
    [
      log(0, 10, 110), // 10 ms a token, known from 110 on
      log(5, 60, 500, { inputTokens: 200 }),
      log(50, 700, 900, { inputTokens: 300 }),
      log(160, 800, 900),
    ],
    1000,
  );
  assert.deepEqual(
    loads.map(({ waiting, running }) => [waiting, running]),
    [
      [0, 0],
      [1, 0],
      [1, 1],
      [1, 1],
    ],
  );
  assert.equal(loads[1]?.inflightTokens, 100);
  assert.equal(loads[2]?.inflightTokens, 200 + 100 + 1);
  assert.equal(loads[3]?.inflightTokens, 300 + 200 + 1 + 10, 'ten tokens in the 100 ms since its first');
  assert.equal(loads[3]?.kvCacheUsage, 0.211, 'who waits holds no memory yet');
});

test('a use of the memory above 1 is not clipped', () => {
  const loads = reconstructLoads([log(0, 1, 90, { inputTokens: 1499 }), log(1, 60, 99)], 1000);
  assert.equal(loads[1]?.kvCacheUsage, 1.5);
});

test('requests that start together do not see each other, whatever their order in the file', () => {
  const loads = reconstructLoads([log(0, 10, 20), log(0, 15, 30), log(0, 20, 40)], 1000);
  assert.deepEqual(
    loads.map(({ waiting, inflightTokens }) => [waiting, inflightTokens]),
    [
      [0, 0],
      [0, 0],
      [0, 0],
    ],
  );
});

test('a server of another run, or another server of the run, adds no load', () => {
  const other = [log(0, 500, 900, { run: 'b' }), log(0, 500, 900, { server: 't' })];
  assert.deepEqual(reconstructLoads([...other, log(10, 20, 30)], 1000)[2], {
    waiting: 0,
    running: 0,
    inflightTokens: 0,
    kvCacheUsage: 0,
  });
});

const anyRequest = fc
  .record({
    server: fc.constantFrom('s', 't'),
    startMs: fc.integer({ min: 0, max: 300 }),
    ttft: fc.integer({ min: 1, max: 150 }),
    decode: fc.integer({ min: 1, max: 200 }),
    inputTokens: fc.integer({ min: 0, max: 2000 }),
    outputTokens: fc.integer({ min: 1, max: 50 }),
  })
  .map(({ startMs, ttft, decode, ...rest }) => log(startMs, startMs + ttft, startMs + ttft + decode, rest));
const anyLog = fc.array(anyRequest, { maxLength: 30 });

test('nothing that happens after a start changes the load seen at it', () => {
  fc.assert(
    fc.property(anyRequest, anyLog, anyLog, anyLog, (self, earlier, changes, later) => {
      const nowMs = self.startMs;
      const before = earlier.filter((request) => request.startMs <= nowMs);
      const [expected] = reconstructLoads([self, ...before], 1000);
      const [seen] = reconstructLoads(
        [
          rewriteFuture(self, nowMs, changes[0]),
          ...before.map((request, i) => rewriteFuture(request, nowMs, changes[i + 1])),
          ...later.map((request) => delayBy(request, nowMs + 1)),
        ],
        1000,
      );
      assert.deepEqual(seen, expected);
    }),
  );
});

/** The same request until `nowMs`; what happens to it from then on is taken from another one. */
function rewriteFuture(request: LoggedRequest, nowMs: number, other = log(0, 77, 777, { outputTokens: 3 })) {
  if (request.endMs <= nowMs) return request;
  const { outputTokens } = other;
  const decodeMs = other.endMs - other.firstTokenMs;
  const firstTokenMs =
    request.firstTokenMs <= nowMs ? request.firstTokenMs : nowMs + other.firstTokenMs - other.startMs;
  return { ...request, firstTokenMs, endMs: Math.max(nowMs, firstTokenMs) + decodeMs, outputTokens };
}

function delayBy(request: LoggedRequest, ms: number): LoggedRequest {
  return {
    ...request,
    startMs: request.startMs + ms,
    firstTokenMs: request.firstTokenMs + ms,
    endMs: request.endMs + ms,
  };
}

test('counts are those of a look at every other request', () => {
  fc.assert(
    fc.property(anyLog, (requests) => {
      const loads = reconstructLoads(requests, 1000);
      for (const [i, self] of requests.entries()) {
        const others = requests.filter((other) => other.server === self.server && other.startMs < self.startMs);
        const waiting = others.filter((other) => other.firstTokenMs > self.startMs);
        const running = others.filter((other) => other.firstTokenMs <= self.startMs && other.endMs > self.startMs);
        assert.deepEqual([loads[i]?.waiting, loads[i]?.running], [waiting.length, running.length]);
        const prompts = [...waiting, ...running].reduce((sum, other) => sum + other.inputTokens, 0);
        assert.ok(loads[i]!.inflightTokens >= prompts + running.length - 1e-6);
      }
    }),
  );
});
