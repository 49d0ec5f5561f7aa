/**
 * No request without authentication may keep the process busy, since all listeners of the service, gRPC too, share its thread. The
 * test measures the processor time of the program, with bounds far above linear work and far below the 5 to 10 seconds that one
 * form of 1 MB took to parse in quadratic time.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { type Program, startProgram } from '../support/programs/start-program.ts';

let program: Program;
before(async () => {
  program = await startProgram({ TRUSTED_PROXIES: '127.0.0.1' });
});
after(() => program[Symbol.asyncDispose]());

const FORM = 'application/x-www-form-urlencoded';
const MEGABYTE = 1_000_000;
const PART = '--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n';

const bodies: [title: string, type: string, body: string][] = [
  ['names without values', FORM, 'a&'.repeat(MEGABYTE / 2)],
  ['nothing but separators', FORM, '&'.repeat(MEGABYTE)],
  ['empty values', FORM, 'a=&'.repeat(MEGABYTE / 3)],
  ['broken escapes', FORM, '%&'.repeat(MEGABYTE / 2)],
  ['deep JSON', 'application/json', '['.repeat(MEGABYTE)],
  ['JSON with many names', 'application/json', `{${'"a":1,'.repeat(MEGABYTE / 6)}"b":1}`],
  ['JSON that is called a form', FORM, '{"a":'.repeat(MEGABYTE / 5)],
  ['many parts', 'multipart/form-data; boundary=b', PART.repeat(MEGABYTE / PART.length)],
];

/** Every target of a post that a caller reaches without an account, or before anybody looks at the account. */
const targets = [
  '/oauth/token',
  '/oauth/revoke',
  '/oauth/introspect',
  '/oauth/device',
  '/oauth/userinfo',
  '/oauth/authorize',
  '/sign-in',
  '/sign-in/second-step',
  '/sign-in/passkey',
  '/sign-in/passkey/options',
  '/sign-out',
  '/setup',
  '/device',
  '/account',
  '/account/tokens',
  '/account/applications',
  '/admin/users',
  '/webhooks',
  '/api/v5/user/access_tokens',
  '/api/v5/user/applications',
  '/api/v5/user/repos',
  '/api/v5/repos/a/b/hooks',
  '/api/v5/repos/a/b/hooks/1/tests',
  '/api/v5/repos/a/b/events',
  '/nowhere',
];

/** Processor time of the program since its start, in seconds. */
async function readProcessorSeconds(): Promise<number> {
  const text = await (await fetch(`${program.httpUrl}/metrics`)).text();
  return Number(/^process_cpu_seconds_total (\S+)/m.exec(text)?.[1]);
}

async function measure(work: () => Promise<void>): Promise<number> {
  const start = await readProcessorSeconds();
  await work();
  return (await readProcessorSeconds()) - start;
}

const REFUSED = new Set([303, 400, 401, 403, 404, 405, 413, 415]);

async function post(path: string, type: string, body: string | ReadableStream): Promise<number> {
  const { httpUrl } = program;
  const init = {
    method: 'POST',
    body,
    headers: { 'content-type': type, origin: httpUrl },
    redirect: 'manual',
  } as const;
  const response = await fetch(httpUrl + path, { ...init, duplex: 'half' } as RequestInit);
  await response.arrayBuffer();
  return response.status;
}

for (const [title, type, body] of bodies)
  test(`a body of 1 MB is refused without being parsed: ${title}`, async () => {
    for (const path of targets) {
      const seconds = await measure(async () => {
        const status = await post(path, type, body);
        assert.ok(REFUSED.has(status), `${path} answered ${status}`);
      });
      assert.ok(seconds < 1, `${path} took ${seconds} s`);
    }
  });

test('a body that comes in chunks is refused without being parsed', async () => {
  const [, type, body] = bodies[0]!;
  for (const path of targets) {
    const seconds = await measure(async () => {
      assert.ok(REFUSED.has(await post(path, type, new Blob([body]).stream())), path);
    });
    assert.ok(seconds < 1, `${path} took ${seconds} s`);
  }
});

test('a small form with more fields than any endpoint reads is refused', async () => {
  assert.equal(await post('/oauth/token', FORM, 'a&'.repeat(8000)), 400);
  for (const path of ['/oauth/authorize', '/sign-in', '/setup', '/device']) {
    const init = { method: 'POST', body: 'a&'.repeat(8000), headers: { 'content-type': FORM } };
    const answer = await fetch(program.httpUrl + path, { ...init, redirect: 'manual' });
    const cookie = answer.headers
      .getSetCookie()
      .map((line) => line.split(';')[0])
      .join('; ');
    const location = answer.headers.get('location') ?? '';
    assert.match(location, /^\/refused\?/, path);
    assert.equal((await fetch(program.httpUrl + location, { headers: { cookie } })).status, 400, path);
  }
});

test('a query with more parameters than any endpoint reads is refused', async () => {
  const query = `?${'a&'.repeat(5000)}`;
  for (const path of [
    '/oauth/authorize',
    '/oauth/jwks',
    '/sign-in',
    '/device',
    '/api/v5/user',
    '/webhooks',
    '/healthz',
  ]) {
    const response = await fetch(program.httpUrl + path + query, { redirect: 'manual' });
    assert.equal(response.status, 400, path);
    await response.arrayBuffer();
  }
});

const HEAD_BYTES = 15_000;
const fill = (text: string) => text.repeat(HEAD_BYTES / text.length);

/** As long as Node lets the head of a request be. */
const heads: [title: string, path: string, headers: Record<string, string>][] = [
  ['cookies', '/', { cookie: fill('a=b;') }],
  ['empty cookies', '/', { cookie: fill('=;') }],
  ['proxies', '/', { 'x-forwarded-for': `${fill('::,')}198.51.100.1` }],
  ['proxies that are no addresses', '/', { 'x-forwarded-for': fill('1.1.') }],
  ['a client', '/oauth/userinfo', { authorization: `Basic ${fill('AAAA')}` }],
  ['a token', '/api/v5/user', { authorization: `Bearer ${fill(' ')}x` }],
  ['a scheme', '/api/v5/user', { authorization: fill('bearer ') }],
  ['a trace', '/', { traceparent: fill('00-') }],
  ['a content type', '/', { 'content-type': `application/${fill('+')}` }],
  ['languages', '/', { 'accept-language': fill('a;q=0,') }],
  ['slashes', fill('/'), {}],
  ['dots', `/${fill('a/../')}`, {}],
  ['escapes', `/api/v5/repos/${fill('%41')}/b`, {}],
  ['broken escapes', `/api/v5/repos/${fill('%')}/b`, {}],
  ['a path of the console', `/webhooks${fill('/a')}`, {}],
  ['a return address', `/sign-in?return_to=${fill('/%2e%2e')}`, {}],
  ['a user code', `/device?user_code=${fill('a')}`, {}],
  ['scopes', `/oauth/authorize?client_id=git-credential-oauth&scope=${fill('a+')}`, {}],
  [
    'a redirect address',
    `/oauth/authorize?client_id=git-credential-oauth&redirect_uri=http://127.0.0.1${fill('/.')}`,
    {},
  ],
];

const TIMES = 20;

for (const [title, path, headers] of heads)
  test(`the longest head of a request is cheap: ${title}`, async () => {
    const seconds = await measure(async () => {
      for (let time = 0; time < TIMES; time++) {
        const response = await fetch(program.httpUrl + path, { headers, redirect: 'manual' });
        assert.ok(response.status < 500, `${response.status}`);
        await response.arrayBuffer();
      }
    });
    assert.ok(seconds < 1, `${TIMES} requests took ${seconds} s`);
  });

test('the description of the API is made once, not for everybody who asks', async () => {
  const read = async () => {
    const response = await fetch(`${program.httpUrl}/openapi.json`);
    assert.equal(response.headers.get('content-type'), 'application/json');
    await response.arrayBuffer();
  };
  await read();
  const seconds = await measure(async () => {
    for (let time = 0; time < 300; time++) await read();
  });
  assert.ok(seconds < 1.5, `300 requests took ${seconds} s`);
});

test('probes are answered while large forms come in', async () => {
  const [, type, body] = bodies[0]!;
  let areProbing = true;
  const attack = async (): Promise<void> => {
    while (areProbing) assert.equal(await post('/oauth/token', type, body), 413);
  };
  const probe = async (): Promise<void> => {
    for (let count = 0; count < 10; count++) assert.equal((await fetch(`${program.httpUrl}/healthz`)).status, 200);
    areProbing = false;
  };
  await Promise.all([probe(), ...Array.from({ length: 4 }, attack)]);
});

test('a caller without a token is refused before its body has come', async () => {
  const socket = connect(Number(new URL(program.httpUrl).port), '127.0.0.1').setEncoding('utf8');
  const head = 'POST /api/v5/repos/a/b/events HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n';
  socket.write(`${head}Authorization: Bearer x\r\nContent-Length: 500000\r\n\r\n`);
  const [answer] = (await once(socket, 'data')) as [string];
  assert.match(answer, /^HTTP\/1\.1 401 /);
  socket.destroy();
});
