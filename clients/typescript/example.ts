/**
 * Routes made-up requests to a made-up pool: a fast server and one that takes three times as long.
 *
 *     node example.ts [--http http://127.0.0.1:8080] [--grpc 127.0.0.1:50051] [--requests 300]
 */
import { parseArgs } from 'node:util';
import { connectHttp } from './http-client.ts';
import { createRouter } from './router.ts';

/** Milliseconds for each output token. */
const POOL: Readonly<Record<string, number>> = { '10.0.0.1': 10, '10.0.0.2': 30 };
const OUTPUT_TOKENS = 100;

const { values } = parseArgs({
  options: {
    http: { type: 'string', default: 'http://127.0.0.1:8080' },
    grpc: { type: 'string' },
    requests: { type: 'string', default: '300' },
  },
});
// Only gRPC needs packages.
const client =
  values.grpc === undefined ? connectHttp(values.http) : (await import('./grpc-client.ts')).connectGrpc(values.grpc);
// A long deadline, to show predictions on a busy machine too. A gateway keeps the default of 50 ms.
const router = createRouter({ client, model: 'qwen3-32b', deadlineMs: 1000 });

const requestsByServer: Record<string, number> = {};
const requestsByVersion: Record<string, number> = {};
for (let index = 0; index < Number(values.requests); index++) {
  const promptTokens = 200 + (index % 1800);
  const choice = await router.choose(promptTokens, Object.keys(POOL));
  const version = choice.modelVersion || 'fallback';
  requestsByServer[choice.address] = (requestsByServer[choice.address] ?? 0) + 1;
  requestsByVersion[version] = (requestsByVersion[version] ?? 0) + 1;
  // A gateway sends the request here, and measures these two times.
  const perToken = POOL[choice.address]!;
  choice.firstToken((promptTokens * perToken) / 50);
  choice.finished((OUTPUT_TOKENS - 1) * perToken, OUTPUT_TOKENS);
}
const reported = await router.close();
console.log('requests by server:', requestsByServer);
console.log('by model version:', requestsByVersion);
console.log('reported:', reported);
