import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { connectRaw } from '../support/grpc/grpc-client.ts';
import { startProgram } from '../support/programs/start-program.ts';

interface Span {
  readonly name: string;
  readonly traceId: string;
  readonly parentSpanId?: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly status: { readonly code: number };
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[];
}

/** Stands in for an OpenTelemetry collector, which takes OTLP as JSON over HTTP. */
async function startCollector() {
  const spans: Span[] = [];
  const services = new Set<unknown>();
  let headers: IncomingHttpHeaders = {};
  const take = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    assert.equal(request.url, '/v1/traces');
    headers = request.headers;
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { resourceSpans } = JSON.parse(Buffer.concat(chunks).toString()) as {
      resourceSpans: { resource: Pick<Span, 'attributes'>; scopeSpans: { spans: Span[] }[] }[];
    };
    for (const { resource, scopeSpans } of resourceSpans) {
      services.add(readAttribute(resource, 'service.name'));
      spans.push(...scopeSpans.flatMap((scope) => scope.spans));
    }
    response.writeHead(200, { 'Content-Type': 'application/json' }).end('{}');
  };
  const server = createServer((request, response) => void take(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    services,
    headers: () => headers,
    [Symbol.dispose]: () => void server.close(),
  };
}

function readAttribute({ attributes }: Pick<Span, 'attributes'>, key: string): unknown {
  const value = attributes.find((attribute) => attribute.key === key)?.value;
  return value === undefined ? undefined : Object.values(value)[0];
}

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const PARENT_ID = 'b7ad6b7169203331';
const SERVER_KIND = 2;

test('spans of requests reach a collector, as children of their callers, under names without what callers chose', async () => {
  using collector = await startCollector();
  await using program = await startProgram({
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=deep%20blue',
  });
  const call = (path: string, flags?: string, init: RequestInit = {}) =>
    fetch(`${program.httpUrl}${path}`, {
      ...init,
      headers: flags === undefined ? {} : { traceparent: `00-${TRACE_ID}-${PARENT_ID}-${flags}` },
    });
  const beforeMs = Date.now();
  const traced = await call('/api/v5/repos/ada/engine?access_token=secret', '01');
  assert.equal(traced.status, 401);
  await call('/api/v5/repos/ada/untraced', '00');
  const root = await call('/oauth/token?client_secret=secret', undefined, { method: 'POST' });
  await call('/healthz', '01');
  using grpc = connectRaw(program.grpcAddress);
  // An empty request: there is no target model.
  await assert.rejects(grpc.unary('/prediction.v1.PredictionService/Predict', new Uint8Array()), { code: 3 });
  assert.equal(await program.stop(), 0);

  assert.deepEqual(
    collector.spans.map(({ name }) => name),
    ['GET /api/v5/repos/:owner/:repo', 'POST /oauth/token', 'prediction.v1.PredictionService/Predict'],
    'not what the caller does not record, and no probes',
  );
  const [child, first, predict] = collector.spans;
  assert.ok(child && first && predict);
  assert.deepEqual([child.traceId, child.parentSpanId, child.kind], [TRACE_ID, PARENT_ID, SERVER_KIND]);
  assert.equal(readAttribute(child, 'http.response.status_code'), 401);
  assert.equal(first.traceId, root.headers.get('x-trace-id'), 'a trace that begins here has the id of its log line');
  assert.equal(first.parentSpanId, undefined);
  assert.equal(readAttribute(predict, 'rpc.grpc.status_code'), 3);
  for (const span of collector.spans) {
    const [startNs, endNs] = [BigInt(span.startTimeUnixNano), BigInt(span.endTimeUnixNano)];
    assert.ok(BigInt(beforeMs - 1) * 1_000_000n <= startNs && startNs < endNs);
  }
  assert.ok(!JSON.stringify(collector.spans).includes('secret'));
  assert.deepEqual([...collector.services], ['trivet']);
  assert.equal(collector.headers()['x-tenant'], 'deep blue');
});

test('a collector that is away costs neither answers nor the stop, and is named in the log', async () => {
  await using program = await startProgram({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' });
  assert.equal((await fetch(`${program.httpUrl}/openapi.json`)).status, 200);
  assert.equal(await program.stop(), 0);
  assert.match(program.log(), /ECONNREFUSED[^\n]*spans of traces/);
});
