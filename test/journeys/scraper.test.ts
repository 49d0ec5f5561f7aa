/** A gateway that knows no load: it asks with model, prompt length and server names alone. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { waitUntil } from '../support/basics/wait-until.ts';
import { type Program, startProgram } from '../support/programs/start-program.ts';

interface Load {
  running: number;
  waiting: number;
  usage: number;
}

async function startServer(load: Load) {
  const server = createServer((_request, response) =>
    response.end(
      `vllm:num_requests_running ${load.running}\nvllm:num_requests_waiting ${load.waiting}\nvllm:kv_cache_usage_perc ${load.usage}\n`,
    ),
  ).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    name: `127.0.0.1:${port}`,
    url: `http://127.0.0.1:${port}/metrics`,
    [Symbol.dispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

type Row = Readonly<Record<string, number | string>>;

async function predict(program: Program, inputs: readonly Row[]) {
  const response = await fetch(`${program.httpUrl}/prediction.v1.PredictionService/Predict`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ targetModel: 'llama', inputs }),
  });
  return (await response.json()) as {
    readonly outputs: readonly { readonly serverIp: string; readonly predictedTtftMillis: number }[];
    readonly metadata: { readonly omittedInputs: number };
  };
}

const asked = (serverIp: string): Row => ({ inputTokenLength: 1000, serverIp });

test('rows without a load take that of their server, and rows with one keep it', async () => {
  using busy = await startServer({ running: 100, waiting: 50, usage: 0.9 });
  using idle = await startServer({ running: 1, waiting: 0, usage: 0.01 });
  await using program = await startProgram({
    PREDICTION_SCRAPE: `${busy.url},${idle.url},${busy.url}`,
    PREDICTION_SCRAPE_INTERVAL_MS: '50',
    PREDICTION_SCRAPE_STALE_MS: '500',
  });
  const ask = () => predict(program, [asked(busy.name), asked(idle.name), asked('10.9.9.9')]);
  const askUntil = (holds: (servers: number) => boolean) =>
    waitUntil(async () => {
      const found = await ask();
      return holds(found.outputs.length) && found;
    });
  let answer = await askUntil((servers) => servers === 3);
  const [busyMs, idleMs, unknownMs] = answer.outputs.map((output) => output.predictedTtftMillis);
  assert.ok(busyMs! > 5 * idleMs!, `${busyMs} beside ${idleMs}`);
  assert.ok(idleMs! >= unknownMs!, 'a server that is not listed is taken as it came');

  const own = await predict(program, [{ ...asked(busy.name), numRequestRunning: 1, kvCacheUsage: 0.01 }]);
  assert.equal(own.outputs[0]?.predictedTtftMillis, idleMs);

  const twice = await predict(program, [asked(busy.name), asked(idle.name), asked(busy.name), asked(idle.name)]);
  const [busyLoadedMs, idleLoadedMs, busyIdleMs] = twice.outputs.map((output) => output.predictedTtftMillis);
  assert.deepEqual([busyLoadedMs, idleLoadedMs], [busyMs, idleMs]);
  assert.equal(busyIdleMs, unknownMs, 'the second half of the call asks about idle servers');

  busy[Symbol.dispose]();
  answer = await askUntil((servers) => servers < 3);
  assert.deepEqual(
    [answer.outputs.map((output) => output.serverIp), answer.metadata.omittedInputs],
    [[idle.name, '10.9.9.9'], 1],
  );
  const listedTwice = await predict(program, [asked(busy.name), asked(busy.name)]);
  assert.deepEqual([listedTwice.outputs, listedTwice.metadata.omittedInputs], [[], 2]);
  const metrics = await (await fetch(`${program.httpUrl}/metrics`)).text();
  assert.match(metrics, new RegExp(`trivet_prediction_scrape_age_seconds\\{server="${busy.name}"\\} [0-9.]+`));
  assert.match(metrics, /trivet_prediction_scrape_stale_rows_total [1-9]/);
});

test('a list that cannot be read stops the start with the entry that is wrong', async () => {
  await assert.rejects(startProgram({ PREDICTION_SCRAPE: 'ftp://a/metrics' }), /got \\?"ftp:\/\/a\/metrics/);
  await assert.rejects(
    startProgram({ PREDICTION_SCRAPE: '/nowhere/servers' }),
    /"?\/nowhere\/servers\\?" must be readable/,
  );
});
