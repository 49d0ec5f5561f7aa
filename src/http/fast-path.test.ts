/** An endpoint answers the same on the fast path and among the routes: same status, same headers, same bytes, same log line. */
import assert from 'node:assert/strict';
import { type IncomingHttpHeaders, request } from 'node:http';
import { connect } from 'node:net';
import { text as readText } from 'node:stream/consumers';
import { test } from 'node:test';
import { waitUntil } from '../../test/support/basics/wait-until.ts';
import { Failure } from '../errors.ts';
import { createLog } from '../telemetry/log.ts';
import { createMetrics, type Metrics } from '../telemetry/metrics.ts';
import { realWorld } from '../world.ts';
import { type Call, type Endpoint, replyJson } from './endpoint.ts';
import { createHttpApp } from './http-app.ts';
import { listenHttp } from './http-server.ts';
import type { ReplyStyle, RouteMount } from './mount.ts';
import { createRoutes } from './routes.ts';

/** Echoes its request; refuses or fails if the request demands it. */
async function echo(call: Call) {
  const fields = call.query === '' ? new URLSearchParams() : new URLSearchParams(call.query);
  if (fields.has('private')) call.setHeader('Cache-Control', 'no-store');
  if (fields.has('refuse'))
    throw new Failure('too_many', 'Cannot do "more"', {
      retryAfterSeconds: 7,
      headers: { 'WWW-Authenticate': 'Basic' },
    });
  if (fields.has('break')) throw new TypeError('secret inside');
  const isForm = /form/.test(call.header('content-type') ?? '');
  const body = isForm ? [...(await call.form())] : await call.text();
  const { method, query, clientAddress } = call;
  return replyJson({ method, query, clientAddress, type: call.header('content-type')?.slice(0, 20), body, mark: 'ü' });
}

/** Accepts larger bodies than other endpoints, on a path with a name. */
const NAMED: Endpoint = {
  method: 'POST',
  path: '/{name}/echo',
  maxBodyBytes: 4000,
  answer: async (call) => {
    if (call.query === '?refuse')
      throw new Failure('invalid', 'Cannot read', { status: 422, faults: [{ loc: ['a'] }] });
    return replyJson({ parameter: call.parameter, bytes: (await call.bytes()).length });
  },
};

function createMount(path: string, errors: ReplyStyle): RouteMount {
  const endpoints: Endpoint[] = [
    { method: 'GET', path: '/', answer: echo },
    { method: 'GET', path: '/echo', answer: echo },
    { method: 'POST', path: '/echo', answer: echo },
    { method: 'POST', path: '/open', isOpenToScripts: true, answer: echo },
  ];
  return { path, errors, routes: createRoutes(), endpoints };
}

interface Service {
  readonly url: string;
  readonly lines: string[];
  readonly metrics: Metrics;
}

async function withService(run: (service: Service) => Promise<void>): Promise<void> {
  const lines: string[] = [];
  const log = createLog('info', { write: (line: string) => void lines.push(line) });
  const metrics = createMetrics();
  const http = await listenHttp({ host: '127.0.0.1', port: 0 });
  const mounts = [
    createMount('/oauth', 'oauth'),
    createMount('/api/v5/user', 'platform'),
    createMount('/own', 'problem'),
    { path: '/named', errors: 'detail' as const, routes: createRoutes(), endpoints: [NAMED] },
  ];
  const checkReady = async () => {};
  http.serve(createHttpApp({ mounts, log, metrics, world: realWorld, maxBodyBytes: 1024, checkReady }));
  try {
    await run({ url: http.url, lines, metrics });
  } finally {
    await http.drain(0);
  }
}

interface Question {
  readonly method?: string;
  readonly path: string;
  readonly headers?: readonly string[];
  readonly body?: string | Uint8Array;
}

interface Answer {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

function ask(url: string, { method = 'GET', path, headers = [], body }: Question): Promise<Answer> {
  const length = body === undefined ? [] : ['Content-Length', String(Buffer.byteLength(body))];
  const all = ['Host', new URL(url).host, ...headers, ...length];
  return new Promise((resolve, reject) => {
    const call = request(url + path, { method, headers: all }, (response) => {
      const { statusCode: status, headers: answered } = response;
      void readText(response).then((text) => resolve({ status, headers: answered, body: text }), reject);
    });
    call.on('error', reject);
    call.end(body);
  });
}

/** A header that comes twice and has no meaning: it sends a request through the routes. */
const TO_FALLBACK = ['X-Twice', '1', 'X-Twice', '2'];
const TRACE = ['traceparent', '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'];
const FORM = ['Content-Type', 'application/x-www-form-urlencoded'];
const boundary = 'b0undary';
const multipart = `--${boundary}\r\nContent-Disposition: form-data; name="a"\r\n\r\nü\r\n--${boundary}--\r\n`;

const questions: [title: string, question: Question][] = [
  ['a GET', { path: '/oauth/echo' }],
  ['the mount itself', { path: '/api/v5/user' }],
  ['a query', { path: '/oauth/echo?a=1&b=%20x+y&a=2' }],
  ['a form', { method: 'POST', path: '/oauth/echo', headers: FORM, body: 'a=1&b=%C3%BC+y&c=' }],
  [
    'a form of another spelling',
    {
      method: 'POST',
      path: '/oauth/echo',
      headers: ['Content-Type', 'Application/X-WWW-Form-Urlencoded; charset=utf-8'],
      body: 'a=1',
    },
  ],
  [
    'a multipart form',
    {
      method: 'POST',
      path: '/oauth/echo',
      headers: ['Content-Type', `multipart/form-data; boundary=${boundary}`],
      body: multipart,
    },
  ],
  [
    'a malformed multipart form',
    { method: 'POST', path: '/oauth/echo', headers: ['Content-Type', 'multipart/form-data'], body: 'x' },
  ],
  [
    'JSON with a byte order mark',
    { method: 'POST', path: '/oauth/echo', headers: ['Content-Type', 'application/json'], body: '\ufeff{"a":"ü"}' },
  ],
  [
    'bytes that are no text',
    {
      method: 'POST',
      path: '/oauth/echo',
      headers: ['Content-Type', 'text/plain'],
      body: new Uint8Array([97, 255, 254, 98]),
    },
  ],
  ['no body', { method: 'POST', path: '/oauth/echo' }],
  ['an answer open to scripts', { method: 'POST', path: '/oauth/open', headers: FORM, body: 'a=1' }],
  ['a refusal open to scripts', { method: 'POST', path: '/oauth/open?refuse', headers: FORM, body: 'a=1' }],
  ['a header set before a refusal', { path: '/oauth/echo?private&refuse' }],
  ['a refusal in the format of the API v5', { path: '/api/v5/user?refuse', headers: TRACE }],
  ['a refusal of our own', { path: '/own/echo?refuse', headers: TRACE }],
  ['an unexpected error', { path: '/own/echo?break', headers: TRACE }],
  ['a path with a name', { method: 'POST', path: '/named/a%2Fb/c/echo', body: 'x'.repeat(4000) }],
  ['a refusal with a list of faults', { method: 'POST', path: '/named/a/echo?refuse', headers: TRACE, body: 'x' }],
  [
    'a body too large for its endpoint',
    { method: 'POST', path: '/named/a/echo', headers: TRACE, body: 'x'.repeat(4001) },
  ],
  ['a body too large', { method: 'POST', path: '/own/echo', headers: [...FORM, ...TRACE], body: 'x'.repeat(2000) }],
];

/** Removes the values that differ between requests. */
function strip({ status, headers, body }: Answer) {
  assert.match(String(headers['x-trace-id']), /^[0-9a-f]{32}$/);
  return { status, headers: { ...headers, date: '', 'x-trace-id': '' }, body };
}

test('both ways answer the same', async (t) => {
  await withService(async ({ url }) => {
    for (const [title, question] of questions)
      await t.test(title, async () => {
        const short = strip(await ask(url, question));
        const long = strip(await ask(url, { ...question, headers: [...(question.headers ?? []), ...TO_FALLBACK] }));
        assert.deepEqual(short, long);
      });
  });
});

test('both write the same log line, without the query, and the same duration', async () => {
  await withService(async ({ url, lines, metrics }) => {
    await ask(url, { path: '/oauth/echo?client_secret=hunter2', headers: TRACE });
    await ask(url, { path: '/oauth/echo?client_secret=hunter2', headers: [...TRACE, ...TO_FALLBACK] });
    const [short, long] = lines.map((line) => {
      const logged = JSON.parse(line) as { readonly path: string; readonly durationMs: number };
      return { ...logged, time: '', durationMs: typeof logged.durationMs };
    });
    assert.deepEqual(short, long);
    assert.equal(short?.path, '/oauth/echo');
    assert.ok(lines.every((line) => !line.includes('hunter2')));
    const text = await metrics.getSingleMetricAsString('trivet_http_request_duration_seconds');
    assert.match(text, /_count\{method="GET",status="200"\} 2/);
  });
});

test('what the fast path does not take is answered all the same', async () => {
  await withService(async ({ url }) => {
    const head = await ask(url, { method: 'HEAD', path: '/oauth/echo' });
    assert.deepEqual([head.status, head.body], [200, '']);
    const preflight = await ask(url, { method: 'OPTIONS', path: '/oauth/open' });
    assert.equal(preflight.status, 204);
    assert.equal(preflight.headers['access-control-allow-methods'], 'GET, POST');
    const other = await ask(url, { method: 'PUT', path: '/oauth/echo' });
    assert.deepEqual([other.status, other.headers.allow], [405, 'GET, POST']);
    assert.equal((await ask(url, { path: '/oauth/echo/' })).status, 404);
    assert.equal((await ask(url, { method: 'GET', path: '/named/a/b/echo' })).status, 405);
    const named = await fetch(`${url}/named/a/b%20c/echo`, {
      method: 'POST',
      body: new Blob(['x'.repeat(3000)]).stream(),
      duplex: 'half',
    } as RequestInit);
    assert.deepEqual(await named.json(), { parameter: 'a/b%20c', bytes: 3000 });
    const chunked = await fetch(`${url}/oauth/echo`, {
      method: 'POST',
      body: new Blob(['a=1']).stream(),
      duplex: 'half',
    } as RequestInit);
    assert.equal(((await chunked.json()) as { body: string }).body, 'a=1');
  });
});

test('a caller that goes away in the middle of its body is logged as a refusal', async () => {
  await withService(async ({ url, lines }) => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    const begun = 'POST /oauth/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\na=1';
    await new Promise((resolve) => socket.write(begun, resolve));
    socket.destroy();
    await waitUntil(() => lines.length > 0);
    assert.match(lines.join(), /"status":400/);
  });
});
