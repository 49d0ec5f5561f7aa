/** Measures look-ups of live tokens beside very many expired ones, alone and while a sweep deletes these. */
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { createSecret, hashSecret } from '../../src/authorization/accounts/secret-text.ts';
import { createUser } from '../../src/authorization/accounts/user-store.ts';
import { createApplication } from '../../src/authorization/applications/application.ts';
import { sweepEnded } from '../../src/authorization/maintenance/retention-store.ts';
import { findLiveToken, insertFamilyStatements } from '../../src/authorization/tokens/token-store.ts';
import { migrations } from '../../src/database/migrations/list.ts';
import { databaseFileOf, openStore } from '../../src/database/startup/open-store.ts';
import type { Store } from '../../src/database/store.ts';
import { SWEEP_WITHOUT_PAUSES } from '../../src/database/sweep.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { realWorld } from '../../src/world.ts';
import { giveConsent } from '../../test/support/authorization/give-consent.ts';
import {
  createTestDatabase,
  findPostgresBinaries,
  startPostgresCluster,
} from '../../test/support/store/postgres-cluster.ts';
import { NEW_POSTGRES } from '../support/new-postgres.ts';

/** More than the read cache holds, so that every look-up reads the database. */
const LIVE = 20_000;
const DAY_MS = 86_400_000;
const RUN_MS = 3_000;

export async function measureExpired(count: number, parentDir: string): Promise<void> {
  const dataDir = mkdtempSync(join(parentDir, 'trivet-bench-'));
  try {
    await measureStore({ dataDir, databaseUrl: undefined }, count);
    if (findPostgresBinaries() === undefined) return;
    const cluster = await startPostgresCluster(NEW_POSTGRES);
    await measureStore({ dataDir, databaseUrl: await createTestDatabase(cluster.socketDir, 'bench') }, count);
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}

interface Place {
  readonly dataDir: string;
  readonly databaseUrl: string | undefined;
}

async function measureStore(place: Place, count: number): Promise<void> {
  await using store = await openStore({ ...place, migrations, world: realWorld, log: createLog('silent') });
  const hashes = await insertLive(store);
  print(store, 'no expired token', await timeLookups(store, hashes));
  await insertExpired(place, count);
  print(store, `${count} expired tokens`, await timeLookups(store, hashes));
  let swept = 0;
  const over = new AbortController();
  const pause = async (): Promise<void> => {
    swept += 1;
    over.signal.throwIfAborted();
  };
  const sweep = { nowMs: realWorld.nowMs(), auditDays: 365 };
  const sweeping = sweepEnded(store, sweep, { ...SWEEP_WITHOUT_PAUSES, pause }).catch(() => undefined);
  const during = await timeLookups(store, hashes);
  over.abort();
  await sweeping;
  print(store, `while ${swept} batches are swept`, during);
}

async function insertLive(store: Store): Promise<Uint8Array[]> {
  const user = { login: 'ada', name: 'Ada', email: null, isAdmin: false, passwordHash: null };
  const { id: userId } = await createUser(store, realWorld, user);
  const form = { name: 'Bench', homepage: '', description: '', redirectUris: ['https://a.example/'], isPublic: false };
  const { application } = await createApplication(store, realWorld, { form, actor: { userId } });
  const { clientId } = application;
  const consentId = await giveConsent(store, { userId, clientId, scopes: ['all_user'] });
  const person = { userId, credentialGeneration: 0, consentId };
  const nowMs = realWorld.nowMs();
  const hashes = Array.from({ length: LIVE }, () => hashSecret(createSecret('access', realWorld)));
  const expiresAtMs = nowMs + 30 * DAY_MS;
  const family = { clientId, person, scope: 'all_user', authTimeMs: nowMs, nowMs, expiresAtMs };
  await store.writeAll(
    hashes.flatMap((hash) =>
      insertFamilyStatements({ ...family, familyId: realWorld.uuid() }, { access: { hash, expiresAtMs } }),
    ),
  );
  return hashes;
}

const COLUMNS = 'access_tokens (token_hash, family_id, scope, issued_at_ms, expires_at_ms)';

/** Uses the bulk insert of each engine: a million single inserts would take longer than the measurement. */
async function insertExpired({ dataDir, databaseUrl }: Place, count: number): Promise<void> {
  const [issued, expired] = [realWorld.nowMs() - 30 * DAY_MS, realWorld.nowMs() - DAY_MS];
  if (databaseUrl === undefined) {
    using database = new DatabaseSync(databaseFileOf(dataDir));
    database.exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
      INSERT INTO ${COLUMNS} SELECT randomblob(32), 'family-' || (i / 100), 'all_user', ${issued}, ${expired} + i FROM n`);
    return;
  }
  const client = new pg.Client(databaseUrl);
  await client.connect();
  await client.query(`INSERT INTO ${COLUMNS}
    SELECT sha256(convert_to('token-' || i, 'UTF8')), 'family-' || (i / 100), 'all_user', ${issued}, ${expired} + i
    FROM generate_series(1, ${count}) i`);
  await client.query('ANALYZE access_tokens');
  await client.end();
}

/** Looks tokens up one after the other. */
async function timeLookups(store: Store, hashes: readonly Uint8Array[]): Promise<number[]> {
  const micros: number[] = [];
  const endsAtMs = performance.now() + RUN_MS;
  for (let index = 0; performance.now() < endsAtMs; index += 1) {
    const hash = hashes[(index * 7) % LIVE] ?? new Uint8Array();
    const startedMs = performance.now();
    const found = await findLiveToken(store, 'access', { hash, nowMs: realWorld.nowMs() });
    micros.push((performance.now() - startedMs) * 1000);
    if (found === undefined) throw new Error('A live token was not found');
    // Lets the event loop handle the writer's answers and other work between two requests.
    if (index % 16 === 0) await new Promise(setImmediate);
  }
  return micros.sort((a, b) => a - b);
}

function print({ engine }: Store, what: string, micros: readonly number[]): void {
  const at = (part: number) => (micros[Math.floor(micros.length * part)] ?? 0).toFixed(1).padStart(7);
  process.stdout.write(`${engine.padEnd(9)} ${what.padEnd(32)} median ${at(0.5)} µs  p99 ${at(0.99)} µs\n`);
}
