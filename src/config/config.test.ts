import assert from 'node:assert/strict';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Failure } from '../errors.ts';
import { explainConfig, parseConfig, readConfig } from './config.ts';
import { listHttpPorts } from './http-ports.ts';

function mistakesOf(read: () => unknown): string {
  try {
    read();
  } catch (error) {
    assert.ok(error instanceof Failure);
    return error.message;
  }
  return assert.fail('it was accepted');
}

test('parseConfig() gives the documented defaults', () => {
  const config = parseConfig({});
  assert.equal(config.server.host, '127.0.0.1');
  assert.equal(config.server.httpPort, 8080);
  assert.equal(config.server.grpcPort, 50051);
  assert.equal(config.store.dataDir, './data');
  assert.equal(config.store.databaseUrl, undefined);
  assert.deepEqual(config.server.parts, ['prediction', 'authorization', 'webhooks']);
});

test('parseConfig() reports every mistake at once, each under its variable', () => {
  const text = mistakesOf(() =>
    parseConfig({
      HTTP_PORT: '80x',
      LOG_LEVEL: 'loud',
      BASE_URL: 'ftp://x',
      PARTS: 'prediction,web',
      GRPC_REFLECTION: 'perhaps',
    }),
  );
  assert.match(text, /HTTP_PORT: must be a whole number from 0 to 65535, got "80x"/);
  assert.match(text, /LOG_LEVEL: must be one of trace, debug, info, warn, error, silent, got "loud"/);
  assert.match(text, /BASE_URL: must be an http or https URL/);
  assert.match(text, /PARTS: must be one of prediction, authorization, webhooks/);
  assert.match(text, /GRPC_REFLECTION: must be true or false/);
});

test('parseConfig() refuses an AUTH_URL with a path, which pages and redirects would ignore', () => {
  for (const url of ['https://id.example.org/auth', 'http://localhost:8080/a/'])
    assert.match(
      mistakesOf(() => parseConfig({ AUTH_URL: url })),
      /AUTH_URL: must have no path/,
    );
  assert.equal(parseConfig({ AUTH_URL: 'https://id.example.org/' }).server.authUrl, 'https://id.example.org');
  assert.equal(parseConfig({ BASE_URL: 'https://example.org/api' }).server.baseUrl, 'https://example.org/api');
});

test('parseConfig() refuses words that every object knows', () => {
  assert.match(
    mistakesOf(() => parseConfig({ GRPC_REFLECTION: 'constructor' })),
    /GRPC_REFLECTION: must be true or false, got "constructor"/,
  );
  assert.match(
    mistakesOf(() => parseConfig({}, { constructor: { port: 1 } })),
    /constructor in file: no such section/,
  );
});

test('parseConfig() reports what is wrong together with everything else', () => {
  const text = mistakesOf(() =>
    parseConfig({
      HTTP_PORT: '80x',
      TRUSTED_PROXIES: '10.0.0.1,proxy.local',
      GRPC_TLS_CERT_FILE: 'cert.pem',
      UPSTREAM_ISSUER: 'https://id.example',
    }),
  );
  assert.match(text, /HTTP_PORT: must be/);
  assert.match(text, /TRUSTED_PROXIES: must be addresses or ranges/);
  assert.match(text, /GRPC_TLS_CERT_FILE and GRPC_TLS_KEY_FILE must be given together/);
  assert.match(text, /UPSTREAM_CLIENT_ID: must be given with UPSTREAM_ISSUER/);
  assert.throws(() => parseConfig({ GRPC_TLS_CLIENT_CA_FILE: 'ca.pem' }), /must be given together/);
  assert.deepEqual(parseConfig({ TRUSTED_PROXIES: '::1, 10.0.0.0/8' }).server.trustedProxies, ['::1', '10.0.0.0/8']);
});

test('parseConfig() refuses a process that serves nothing, or a part twice', () => {
  assert.match(
    mistakesOf(() => parseConfig({ PARTS: ',' })),
    /PARTS: must name at least one part/,
  );
  assert.match(
    mistakesOf(() => parseConfig({ PARTS: 'prediction,webhooks,prediction' })),
    /PARTS: must name each part once/,
  );
});

test('listHttpPorts() lists the port of llm-d where it is served', () => {
  const llmD = { LLM_D_PORT: '8000', LLM_D_MODEL: 'm' };
  const list = (given: Readonly<Record<string, string>>) =>
    listHttpPorts(parseConfig(given)).map(({ variable, port }) => [variable, port]);
  assert.deepEqual(list({}), [['HTTP_PORT', 8080]]);
  assert.deepEqual(list(llmD), [
    ['HTTP_PORT', 8080],
    ['LLM_D_PORT', 8000],
  ]);
  assert.deepEqual(list({ ...llmD, PARTS: 'webhooks' }), [['HTTP_PORT', 8080]]);
});

test('parseConfig() never shows a secret', () => {
  const text = mistakesOf(() => parseConfig({ DATABASE_URL: 'mysql://u:hunter2@h/db' }));
  assert.match(text, /DATABASE_URL: must start with postgres/);
  assert.doesNotMatch(text, /hunter2/);
});

test('the password of an address is shown neither with the settings nor with a mistake', () => {
  const url = 'http://ada:hunter2@collector:4318';
  const explained = explainConfig({ OTEL_EXPORTER_OTLP_ENDPOINT: url, UPSTREAM_ISSUER: url });
  const shown = explained.flatMap(({ value }) => (value?.includes('collector') ? [value] : []));
  assert.deepEqual(shown, Array(2).fill('http://ada:********@collector:4318'));
  const text = mistakesOf(() => parseConfig({ OTEL_EXPORTER_OTLP_ENDPOINT: `${url}?x=1` }));
  assert.match(text, /got "http:\/\/ada:\*{8}@collector:4318\?x=1"/);
});

test('parseConfig() takes a variable before the file, and the file before the default', () => {
  const file = { server: { http_port: 1234, host: '::1' } };
  const config = parseConfig({ HTTP_PORT: '4321' }, file);
  assert.equal(config.server.httpPort, 4321);
  assert.equal(config.server.host, '::1');
});

test('parseConfig() names what a file may hold when it holds something else', () => {
  const text = mistakesOf(() => parseConfig({}, { server: { prot: 1 }, sevrer: {} }, 'trivet.toml'));
  assert.match(text, /server\.prot in trivet\.toml: no such setting, allowed are host, http_port/);
  assert.match(text, /sevrer in trivet\.toml: no such section/);
});

test('parseConfig() names the setting of another section when it has the key', () => {
  const text = mistakesOf(() => parseConfig({}, { grpc: { port: 1, host: '::1', depth: 1 } }, 'trivet.toml'));
  assert.match(
    text,
    /grpc\.port in trivet\.toml: no such setting, did you mean server\.grpc_port\? In grpc allowed are /,
  );
  assert.match(text, /grpc\.host in trivet\.toml: no such setting, did you mean server\.host\?/);
  assert.match(text, /grpc\.depth in trivet\.toml: no such setting, allowed are /);
});

test('parseConfig() is frozen', () => {
  const config = parseConfig({});
  assert.throws(() => Object.assign(config.server, { httpPort: 1 }), TypeError);
});

test('readConfig() reads TOML and JSON alike', () => {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-config-'));
  writeFileSync(join(folder, 'a.toml'), '[server]\nhttp_port = 7\nparts = ["webhooks"]\n');
  writeFileSync(join(folder, 'a.json'), '{"server":{"http_port":7,"parts":["webhooks"]}}');
  for (const name of ['a.toml', 'a.json']) {
    const config = readConfig({ TRIVET_CONFIG: join(folder, name) });
    assert.equal(config.server.httpPort, 7);
    assert.deepEqual(config.server.parts, ['webhooks']);
  }
});

function readToml(text: string) {
  const file = join(mkdtempSync(join(tmpdir(), 'trivet-config-')), 'trivet.toml');
  writeFileSync(file, text);
  return readConfig({ TRIVET_CONFIG: file });
}

test('readConfig() reads octal digits of permissions with and without quotes, and refuses octal numbers of TOML', () => {
  for (const digits of ['"660"', '"0660"', '660'])
    assert.equal(readToml(`[grpc]\nunix_socket_mode = ${digits}\n`).grpc.unixSocketMode, 0o660);
  assert.equal(readToml('[grpc]\nunix_socket_mode = "220"\n').grpc.unixSocketMode, 0o220);
  for (const [octal, decimal] of [
    ['0o660', 432],
    ['0o640', 416],
    ['0o777', 511],
  ] as const)
    assert.match(
      mistakesOf(() => readToml(`[grpc]\nunix_socket_mode = ${octal}\n`)),
      new RegExp(`unix_socket_mode in .*: must be three octal digits in quotes, for example "660", got ${decimal}`),
    );
  for (const digits of ['680', '1777', '660.5'])
    assert.match(
      mistakesOf(() => readToml(`[grpc]\nunix_socket_mode = ${digits}\n`)),
      /must be three octal digits, for example 660/,
    );
});

test('readConfig() reads a choice that is a number without quotes', () => {
  for (const quantile of ['0.95', '"0.95"'])
    assert.equal(readToml(`[prediction]\nllm_d_quantile = ${quantile}\n`).prediction.llmDQuantile, '0.95');
  assert.match(
    mistakesOf(() => readToml('[prediction]\nllm_d_quantile = 0.8\n')),
    /must be one of 0.5, 0.9, 0.95, 0.99, got 0.8/,
  );
});

test('readConfig() takes an empty TRIVET_CONFIG as not given', () => {
  assert.deepEqual(readConfig({ TRIVET_CONFIG: '' }), readConfig({}));
});

test('readConfig() refuses a file that is not there or not readable', () => {
  assert.match(
    mistakesOf(() => readConfig({ TRIVET_CONFIG: '/nowhere/trivet.toml' })),
    /Cannot read the configuration file/,
  );
});
