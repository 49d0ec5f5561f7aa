/** Trivet's authorization area on its embedded store, as it ships: durable, with metrics, a log line for each request. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { createSecret, hashSecret } from '../../src/authorization/accounts/secret-text.ts';
import { insertCodeStatement } from '../../src/authorization/oauth/protocol/code-store.ts';
import { insertFamilyStatements } from '../../src/authorization/tokens/token-store.ts';
import { migrations } from '../../src/database/migrations/list.ts';
import { openStore } from '../../src/database/startup/open-store.ts';
import type { BoundStatement } from '../../src/database/store.ts';
import { createLog, gatherLines } from '../../src/telemetry/log.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { realWorld } from '../../src/world.ts';
import {
  CALLBACK,
  createPerson,
  registerApplication,
  startAuthorizationServer,
} from '../../test/support/authorization/authorization-server.ts';
import { giveConsent } from '../../test/support/authorization/give-consent.ts';
import { type Kind, serveParent } from './protocol.ts';

const dataDir = mkdtempSync(join(process.argv[2] ?? tmpdir(), 'trivet-bench-'));
process.on('exit', () => rmSync(dataDir, { recursive: true, force: true }));
// Into a file, as a service manager keeps it.
const log = createLog('info', gatherLines(pino.destination({ dest: join(dataDir, 'log'), sync: true })));
const store = await openStore({ dataDir, migrations, world: realWorld, log, metrics: createMetrics() });
const server = await startAuthorizationServer(store, { log });
const { user } = await createPerson(server, 'ada');
const { clientId, clientSecret } = await registerApplication(server);
const consentId = await giveConsent(server.store, { userId: user.id, clientId, scopes: ['all_user'] });
const person = { userId: user.id, credentialGeneration: user.credentialGeneration, consentId };

const DAY_MS = 86_400_000;

function prepareOne(kind: Kind): { readonly secret: string; readonly statements: readonly BoundStatement[] } {
  const nowMs = realWorld.nowMs();
  if (kind === 'exchange') {
    const secret = createSecret('code', realWorld);
    const code = {
      clientId,
      ...person,
      redirectUri: CALLBACK,
      scope: 'all_user',
      authTimeMs: nowMs,
      issuedAtMs: nowMs,
    };
    const expiresAtMs = nowMs + 60_000;
    const step = insertCodeStatement({
      ...code,
      codeHash: hashSecret(secret),
      codeChallenge: undefined,
      nonce: undefined,
      expiresAtMs,
    });
    return { secret, statements: [step] };
  }
  const [access, refresh] = [createSecret('access', realWorld), createSecret('refresh', realWorld)];
  const familyId = realWorld.uuid();
  const expiresAtMs = nowMs + 30 * DAY_MS;
  const family = { familyId, clientId, person, scope: 'all_user', authTimeMs: nowMs, nowMs, expiresAtMs };
  const tokens = {
    access: { hash: hashSecret(access), expiresAtMs },
    refresh: { hash: hashSecret(refresh), expiresAtMs },
  };
  return { secret: kind === 'refresh' ? refresh : access, statements: insertFamilyStatements(family, tokens) };
}

serveParent({
  ready: {
    port: Number(new URL(server.url).port),
    clientId,
    clientSecret,
    tokenPath: '/oauth/token',
    introspectPath: '/oauth/introspect',
    userPath: '/api/v5/user',
  },
  prepare: async (kind, count) => {
    const prepared = Array.from({ length: count }, () => prepareOne(kind));
    await store.writeAll(prepared.flatMap(({ statements }) => statements));
    return prepared.map(({ secret }) => secret);
  },
  commit: async () => {
    await store.writeAll(prepareOne('introspect').statements);
  },
});
