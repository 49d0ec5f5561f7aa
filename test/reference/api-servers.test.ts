/** `/openapi.json` names the address at which clients reach each operation. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { startApp } from '../../src/app.ts';
import { parseConfig } from '../../src/config/config.ts';

interface OpenApi {
  readonly servers: readonly { readonly url: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly servers?: OpenApi['servers'] }>>>>;
}

const cases: readonly [title: string, addresses: Readonly<Record<string, string>>, expected: string][] = [
  ['its own', { AUTH_URL: 'https://id.example.org' }, 'https://id.example.org'],
  ['that of the service', { AUTH_URL: 'https://api.example.org' }, 'https://api.example.org'],
];

for (const [title, addresses, expected] of cases)
  test(`the address of the authorization server is ${title}`, async (t) => {
    const dataDir = mkdtempSync(join(tmpdir(), 'trivet-servers-'));
    t.after(() => rmSync(dataDir, { recursive: true, force: true }));
    const settings = { HTTP_PORT: '0', GRPC_PORT: '0', LOG_LEVEL: 'silent', TRIVET_DATA_DIR: dataDir };
    await using app = await startApp(parseConfig({ ...settings, BASE_URL: 'https://api.example.org', ...addresses }));
    const document = (await (await fetch(`${app.httpUrl}/openapi.json`)).json()) as OpenApi;
    const wrong = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).flatMap(([method, { servers = document.servers }]) => {
        const wanted = path.startsWith('/oauth/') ? expected : 'https://api.example.org';
        return servers.map(({ url }) => url).join() === wanted ? [] : [`${method} ${path}`];
      }),
    );
    assert.deepEqual(wrong, []);
    assert.ok('/oauth/token' in document.paths);
  });
