/** No cache on the path may store an answer to a request with a token, and serve it to a client without one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HOOKS, useWebhookJourney } from '../support/webhooks/webhook-journey.ts';

const journey = useWebhookJourney();

interface Description {
  readonly paths: Record<string, Record<string, unknown>>;
}

async function listOperations(): Promise<[method: string, path: string][]> {
  const response = await fetch(`${journey.httpUrl}/openapi.json`);
  const { paths } = (await response.json()) as Description;
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method): [string, string] => [method.toUpperCase(), path]),
  );
}

const CARRIERS: [title: string, carry: (token: string) => [headers: Record<string, string>, query: string]][] = [
  ['Authorization', (token) => [{ authorization: `Bearer ${token}` }, '']],
  ['PRIVATE-TOKEN', (token) => [{ 'private-token': token }, '']],
  ['access_token', (token) => [{}, `?access_token=${token}`]],
  ['no token', () => [{}, '']],
];

for (const [title, carry] of CARRIERS)
  test(`no answer of the API may be stored: ${title}`, async () => {
    const { id } = await journey.createHook({ url: 'http://127.0.0.1:9001/', password: 'a password' });
    const operations = await listOperations();
    assert.ok(operations.filter(([, path]) => path.startsWith('/api/v5')).length > 20);
    // Deletions come last, since the other operations are about the same repository.
    const inOrder = operations.toSorted(([one], [other]) => Number(one === 'DELETE') - Number(other === 'DELETE'));
    const values: Record<string, string> = {
      owner: 'grace',
      repo: 'doors',
      org: 'grace',
      id: String(id),
      name: 'github',
    };
    for (const [method, path] of inOrder.filter(([, operation]) => operation.startsWith('/api/v5'))) {
      if (method === 'DELETE' && path.endsWith('/{repo}')) continue;
      const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => values[name] ?? '1');
      const [headers, query] = carry(journey.token);
      const response = await fetch(`${journey.httpUrl}${filled}${query}`, { method, headers });
      await response.arrayBuffer();
      const shown = `${method} ${filled}: ${response.status}`;
      assert.match(response.headers.get('cache-control') ?? '', /no-store/, shown);
      if (!path.endsWith('/events')) assert.equal(response.headers.get('vary'), 'Authorization, Private-Token', shown);
    }
  });

test('nothing else may be stored but what is the same for everybody', async () => {
  const open: Record<string, RegExp> = {
    '/.well-known/oauth-authorization-server': /^public/,
    '/oauth/jwks': /^public/,
    '/sign-in': /no-store/,
    '/': /no-store/,
    '/no-such-page': /no-store/,
    '/oauth/authorize': /no-store/,
    '/oauth/userinfo': /no-store/,
    '/readyz': /no-store/,
    [`/api/v5${HOOKS}/x/y/z`]: /no-store/,
  };
  for (const [path, expected] of Object.entries(open)) {
    const response = await fetch(`${journey.httpUrl}${path}`, { redirect: 'manual' });
    await response.arrayBuffer();
    assert.match(response.headers.get('cache-control') ?? '', expected, `${path}: ${response.status}`);
  }
});
