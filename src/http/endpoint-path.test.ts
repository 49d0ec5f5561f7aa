import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Endpoint, replyJson } from './endpoint.ts';
import { createEndpointFinder, listEndpoints } from './endpoint-path.ts';
import { createRoutes } from './routes.ts';

const paths = ['/{model}/predict', '/{model}/predict/bulk', '/{model}/predict/bulk/strict', '/plain'];
const endpoints: Endpoint[] = paths.map((path) => ({ method: 'POST', path, answer: async () => replyJson(path) }));
const find = createEndpointFinder(
  listEndpoints({ path: '/wire', errors: 'detail', routes: createRoutes(), endpoints }),
);

const cases: [path: string, expected: readonly [path: string, parameter: string] | undefined][] = [
  ['/wire/plain', ['/wire/plain', '']],
  ['/wire/qwen3-32b/predict', ['/wire/{model}/predict', 'qwen3-32b']],
  ['/wire/qwen3-32b/predict/bulk/strict', ['/wire/{model}/predict/bulk/strict', 'qwen3-32b']],
  ['/wire/Qwen/Qwen3-32B/predict/bulk', ['/wire/{model}/predict/bulk', 'Qwen/Qwen3-32B']],
  ['/wire/Qwen%2FQwen3-32B/predict', ['/wire/{model}/predict', 'Qwen%2FQwen3-32B']],
  ['/wire/predict', undefined],
  ['/wire//predict', undefined],
  ['/wire/m/predicted', undefined],
  ['/wires/m/predict', undefined],
];

for (const [path, expected] of cases)
  test(`createEndpointFinder() finds ${expected?.[0] ?? 'nothing'} for ${path}`, () => {
    const found = find('POST', path);
    assert.deepEqual(found && [found.mounted.path, found.parameter], expected);
    assert.equal(find('GET', path), undefined);
  });
