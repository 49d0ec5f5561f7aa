/** Makes one migrated database of each engine for a whole run, and copies of it for tests, which cost less than the migrations. */
import { randomUUID } from 'node:crypto';
import { copyFileSync } from 'node:fs';
import { Socket } from 'node:net';
import pg from 'pg';
import { migrations } from '../../../src/database/migrations/list.ts';
import { migratePostgres } from '../../../src/database/postgres/migrate-postgres.ts';
import { migrateSqlite } from '../../../src/database/sqlite/migrate-sqlite.ts';
import { databaseFileOf } from '../../../src/database/startup/open-store.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { realWorld } from '../../../src/world.ts';
import { makeDataFolder } from '../basics/data-folder.ts';

const TEMPLATE = 'trivet_template';
/** Older servers know no other strategy than copying files, and no name for it. */
const WITH_STRATEGY = 150_000;
const log = createLog('silent');

/** Migrates an embedded database; its copies are made from the folder that this returns, which the caller removes. */
export function createSqliteTemplate(): string {
  const folder = makeDataFolder('trivet-template-');
  // A copy is as private as what the program creates: it takes over the rights of the file.
  const path = databaseFileOf(folder);
  migrateSqlite({ path, migrations, nowMs: realWorld.nowMs(), log });
  return folder;
}

export function copySqliteTemplate(template: string, dataDir: string): void {
  copyFileSync(databaseFileOf(template), databaseFileOf(dataDir));
}

/** Migrates a database of the server, and then refuses connections to it, since an open connection would prevent copies. */
export async function createPostgresTemplate(socketDir: string): Promise<void> {
  await withAdmin(socketDir, (client) => client.query(`CREATE DATABASE ${TEMPLATE}`));
  const pool = new pg.Pool({ host: socketDir, user: 'postgres', database: TEMPLATE, max: 1 });
  await migratePostgres({ pool, migrations, world: realWorld, log });
  await pool.end();
  await withAdmin(socketDir, (client) => client.query(`ALTER DATABASE ${TEMPLATE} ALLOW_CONNECTIONS false`));
}

interface PostgresCopy extends AsyncDisposable {
  readonly databaseUrl: string;
}

/** A database of its own, which is dropped in the end with the connections to it. */
export async function copyPostgresTemplate(socketDir: string): Promise<PostgresCopy> {
  const name = `t_${randomUUID().replaceAll('-', '')}`;
  await withAdmin(socketDir, async (client) => {
    const { rows } = await client.query<{ version: number }>(
      "SELECT current_setting('server_version_num')::int AS version",
    );
    // Without fsync, copying files takes a third of the processor time of writing the pages to the log.
    const strategy = (rows[0]?.version ?? 0) >= WITH_STRATEGY ? 'STRATEGY FILE_COPY' : '';
    await client.query(`CREATE DATABASE ${name} TEMPLATE ${TEMPLATE} ${strategy}`);
  });
  return {
    databaseUrl: `postgres://postgres@/${name}?host=${encodeURIComponent(socketDir)}`,
    [Symbol.asyncDispose]: () =>
      withAdmin(socketDir, async (client) => void (await client.query(`DROP DATABASE ${name} WITH (FORCE)`))),
  };
}

interface Administrator {
  readonly client: pg.Client;
  readonly socket: Socket;
  calls: number;
}

const administrators = new Map<string, Promise<Administrator>>();

/** One connection per server for all calls of a process: one per call would cost more than a copy. It does not keep the process alive. */
async function withAdmin(socketDir: string, run: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const connecting = administrators.get(socketDir) ?? connectAdministrator(socketDir);
  administrators.set(socketDir, connecting);
  const administrator = await connecting;
  administrator.calls += 1;
  administrator.socket.ref();
  try {
    await run(administrator.client);
  } finally {
    administrator.calls -= 1;
    if (administrator.calls === 0) administrator.socket.unref();
  }
}

async function connectAdministrator(socketDir: string): Promise<Administrator> {
  const socket = new Socket();
  const client = new pg.Client({ host: socketDir, user: 'postgres', database: 'postgres', stream: () => socket });
  // The server of a run ends before the process that made its template.
  client.on('error', () => {});
  await client.connect();
  return { client, socket, calls: 0 };
}
