import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { z } from '@hono/zod-openapi';
import { Failure } from '../errors.ts';
import { createLog } from '../telemetry/log.ts';
import { createMetrics } from '../telemetry/metrics.ts';
import { realWorld } from '../world.ts';
import { createHttpApp } from './http-app.ts';
import { listenHttp } from './http-server.ts';
import type { ErrorStyle, RouteMount } from './mount.ts';
import { createRoutes } from './routes.ts';

function createThings(path: string, errors: ErrorStyle): RouteMount {
  const routes = createRoutes();
  routes.openapi(
    {
      method: 'post',
      path: '/things',
      request: { body: { content: { 'application/json': { schema: z.object({ size: z.number() }) } } } },
      responses: { 200: { description: 'Done' } },
    },
    (c) => c.text('done'),
  );
  routes.get('/missing', () => {
    throw new Failure('not_found', 'Cannot find the "thing"', { errorCodeName: 'NOT_EXIST' });
  });
  routes.get('/broken', () => {
    throw new TypeError('secret inside');
  });
  routes.get('/busy', () => {
    throw new Failure('too_many', 'Cannot do more', { retryAfterSeconds: 7 });
  });
  return { path, errors, routes };
}

async function withServer(
  run: (url: string, lines: string[]) => Promise<void>,
  more: readonly RouteMount[] = [],
): Promise<void> {
  const lines: string[] = [];
  const log = createLog('info', { write: (line: string) => void lines.push(line) });
  const http = await listenHttp({ host: '127.0.0.1', port: 0 });
  const mounts = [
    createThings('/own', 'problem'),
    createThings('/api/v5', 'platform'),
    createThings('/oauth', 'oauth'),
    ...more,
  ];
  http.serve(
    createHttpApp({
      mounts,
      log,
      metrics: createMetrics(),
      world: realWorld,
      maxBodyBytes: 1024,
      checkReady: async () => {},
    }),
  );
  try {
    await run(http.url, lines);
  } finally {
    await http.drain(0);
  }
}

test('a refusal is worded in the style of its mount, with the trace id of the answer', async () => {
  await withServer(async (url) => {
    const problem = await fetch(`${url}/own/missing`);
    assert.equal(problem.status, 404);
    assert.match(problem.headers.get('content-type') ?? '', /^application\/problem\+json/);
    const problemBody = (await problem.json()) as Record<string, unknown>;
    assert.equal(problemBody.detail, 'Cannot find the "thing"');
    assert.equal(problemBody.traceId, problem.headers.get('x-trace-id'));

    const platform = await fetch(`${url}/api/v5/missing`);
    assert.deepEqual(await platform.json(), {
      error_code: 404,
      error_code_name: 'NOT_EXIST',
      error_message: 'Cannot find the "thing"',
      message: 'Cannot find the "thing"',
      trace_id: platform.headers.get('x-trace-id'),
    });

    const oauth = await fetch(`${url}/oauth/missing`);
    assert.equal(oauth.headers.get('cache-control'), 'no-store');
    assert.deepEqual(await oauth.json(), { error: 'invalid_request', error_description: "Cannot find the 'thing'" });
  });
});

test('programs are refused in their own words below pages', async () => {
  const run = async (url: string) => {
    for (const path of ['/healthz', '/readyz', '/metrics', '/openapi.json']) {
      const refused = await fetch(url + path, { method: 'POST' });
      assert.deepEqual([refused.status, refused.headers.get('allow')], [405, 'GET']);
      assert.match(refused.headers.get('content-type') ?? '', /^application\/problem\+json/);
    }
    assert.match((await fetch(`${url}/nowhere`)).headers.get('content-type') ?? '', /^text\/html/);
  };
  await withServer(run, [createThings('/', 'page')]);
});

test('/metrics is answered in this spelling alone, which a proxy can refuse', async () => {
  await withServer(async (url) => {
    const ask = async (target: string) => {
      const { hostname, port } = new URL(url);
      const socket = connect(Number(port), hostname);
      socket.end(`GET ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
      let text = '';
      for await (const part of socket) text += String(part);
      return Number(text.split(' ')[1]);
    };
    assert.deepEqual([await ask('/metrics'), await ask('/metrics?a=1')], [200, 200]);
    for (const target of ['/%6detrics', '/own/../metrics', '/own/%2e%2e/metrics', '/./metrics', `${url}/metrics`])
      assert.equal(await ask(target), 404, target);
  });
});

test('probes are no requests in the metrics, so that they hide no failures', async () => {
  await withServer(async (url) => {
    const count = async () => {
      const metrics = await (await fetch(`${url}/metrics`)).text();
      return metrics.match(/^trivet_http_request_duration_seconds_count.*$/gm) ?? [];
    };
    for (const path of ['/healthz', '/readyz', '/metrics']) await (await fetch(url + path)).text();
    assert.deepEqual(await count(), []);
    await (await fetch(`${url}/own/busy`)).text();
    assert.deepEqual(await count(), ['trivet_http_request_duration_seconds_count{method="GET",status="429"} 1']);
  });
});

test('an unexpected error answers 500 without its text, which goes to the log under the same trace id', async () => {
  await withServer(async (url, lines) => {
    const response = await fetch(`${url}/api/v5/broken`);
    assert.equal(response.status, 500);
    assert.doesNotMatch(await response.text(), /secret inside/);
    const line = lines.find((candidate) => candidate.includes('secret inside'));
    assert.equal((JSON.parse(line ?? '{}') as { traceId: string }).traceId, response.headers.get('x-trace-id'));
  });
});

test('the request line in the log carries the path but never the query', async () => {
  await withServer(async (url, lines) => {
    await fetch(`${url}/oauth/missing?client_secret=hunter2`);
    assert.ok(lines.some((line) => line.includes('"path":"/oauth/missing"')));
    assert.ok(lines.every((line) => !line.includes('hunter2')));
  });
});

test("the caller's trace id is taken over", async () => {
  await withServer(async (url) => {
    const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
    const response = await fetch(`${url}/own/missing`, {
      headers: { traceparent: `00-${traceId}-00f067aa0ba902b7-01` },
    });
    assert.equal(response.headers.get('x-trace-id'), traceId);
  });
});

test('a known path with another method answers 405 and says which are allowed', async () => {
  await withServer(async (url) => {
    const response = await fetch(`${url}/api/v5/things`);
    assert.equal(response.status, 405);
    assert.equal(response.headers.get('allow'), 'POST');
    assert.equal(((await response.json()) as { error_code_name: string }).error_code_name, 'METHOD_NOT_ALLOWED');
    const unknown = await fetch(`${url}/api/v5/nothing`);
    assert.equal(unknown.status, 404);
    assert.equal(((await unknown.json()) as { error_code_name: string }).error_code_name, 'NOT_PATH');
  });
});

test('bad input names the field; a body over the limit is refused', async () => {
  await withServer(async (url) => {
    const post = (body: string) =>
      fetch(`${url}/own/things`, { method: 'POST', body, headers: { 'content-type': 'application/json' } });
    const invalid = await post('{"size":"big"}');
    assert.equal(invalid.status, 400);
    assert.equal(((await invalid.json()) as { field: string }).field, 'size');
    assert.equal((await post(JSON.stringify({ size: 1, more: 'x'.repeat(2000) }))).status, 413);
    assert.equal((await post('{"size":1}')).status, 200);
    assert.equal((await post('{"size":')).status, 400);
  });
});

test('a body that comes in chunks is read and limited too, and a missing body is accepted', async () => {
  await withServer(async (url) => {
    const post = (chunk: string) =>
      fetch(`${url}/own/things`, {
        method: 'POST',
        body: new Blob([chunk, '}']).stream(),
        duplex: 'half',
        headers: { 'content-type': 'application/json' },
      } as RequestInit);
    assert.equal((await post('{"size":1')).status, 200);
    assert.equal((await post(`{"size":1,"more":"${'x'.repeat(2000)}"`)).status, 413);
    assert.equal((await fetch(`${url}/own/things`, { method: 'DELETE' })).status, 405);
    assert.equal((await fetch(`${url}/own/missing`)).status, 404);
  });
});

test('a refusal for now says when to come back', async () => {
  await withServer(async (url) => {
    const response = await fetch(`${url}/own/busy`);
    assert.equal(response.status, 429);
    assert.equal(response.headers.get('retry-after'), '7');
  });
});

test('a taken port is refused with the variable to change', async () => {
  await withServer(async (url) => {
    const port = Number(new URL(url).port);
    await assert.rejects(listenHttp({ host: '127.0.0.1', port }), /the port is taken; set HTTP_PORT/);
    const own = listenHttp({ host: '127.0.0.1', port, variable: 'LLM_D_PORT' });
    await assert.rejects(own, /the port is taken; set LLM_D_PORT/);
  });
});

for (const user of ['user@', 'user:password@', ':password@'])
  test(`a URL that names a user (${user}) is refused with 400 (RFC 9110, section 4.2.4)`, async () => {
    await withServer(async (url) => {
      const { hostname, port } = new URL(url);
      const socket = connect(Number(port), hostname);
      socket.write(`GET http://${user}x/healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
      assert.match(await text(socket), /^HTTP\/1.1 400 .*must not name a user/s);
    });
  });

for (const path of ['/healthz', '/own/busy'])
  test(`a request of HTTP/1.0 without Host is answered as any other: ${path}`, async () => {
    await withServer(async (url) => {
      const { hostname, port } = new URL(url);
      const socket = connect(Number(port), hostname);
      socket.write(`GET ${path} HTTP/1.0\r\n\r\n`);
      assert.match(await text(socket), path === '/healthz' ? /^HTTP\/1.1 200 / : /^HTTP\/1.1 429 /);
    });
  });

/** Sends the head of a request and the first bytes of its body, then disconnects. */
async function leaveEarly(url: string, path: string, framing: string): Promise<void> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${framing}`;
  socket.write(head, () => socket.destroy());
  await once(socket, 'close');
}

test('a caller who leaves before the end of a body is no failure of the service', async () => {
  const read: RouteMount = { path: '/read', errors: 'platform', routes: createRoutes() };
  read.routes.post('/', async (c) => c.text(await c.req.text()));
  const page: RouteMount = { path: '/page', errors: 'page', routes: createRoutes() };
  page.routes.post('/', async (c) => c.text(await c.req.text()));
  await withServer(
    async (url, lines) => {
      const paths = ['/read', '/page', '/own/things'];
      for (const path of paths)
        for (const framing of ['Content-Length: 100\r\n\r\n{"a', 'Transfer-Encoding: chunked\r\n\r\n3\r\n{"a\r\n'])
          await leaveEarly(url, path, framing);
      while (lines.length < 6) await setImmediate();
      const entries = lines.map((line) => JSON.parse(line) as { level: string; status: number });
      assert.deepEqual(
        entries.map(({ level, status }) => [level, status]),
        Array.from({ length: 6 }, () => ['info', 400]),
      );
    },
    [read, page],
  );
});
