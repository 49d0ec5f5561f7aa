/** Runs `trivet migrate`: copies a store between SQLite and PostgreSQL. */
import { Command } from 'commander';
import { createProgress, formatTable, print, printJson, remark } from '../command-line/output.ts';
import { type Config, readConfig } from '../config/config.ts';
import { copyDatabase } from '../database/maintenance/copy-database.ts';
import { explainUsedTarget, type Move, withMoveMark } from '../database/maintenance/move-mark.ts';
import {
  openPostgresTables,
  openSqliteTables,
  type TableConnection,
} from '../database/maintenance/table-connection.ts';
import { migrations } from '../database/migrations/list.ts';
import { markerOf } from '../database/startup/copied-store.ts';
import { lockDataDir } from '../database/startup/data-dir-lock.ts';
import { databaseFileOf, hasDatabase, openStore } from '../database/startup/open-store.ts';
import { Failure, isFailure } from '../errors.ts';
import { createLog } from '../telemetry/log.ts';
import { realWorld } from '../world.ts';

interface MigrateFlags {
  readonly from: string;
  readonly to: string;
  readonly json?: true | undefined;
}

/** A database named on the command line, by one of the two options. */
interface Place {
  readonly dataDir: string;
  readonly databaseUrl: string | undefined;
}

const FORMS = 'sqlite, sqlite:<folder>, postgres or postgres://…';

export function createMigrateCommand(): Command {
  return new Command('migrate')
    .description('Copy everything from one database into another that is empty; stop the service before')
    .requiredOption('--from <database>', `${FORMS}; without a place, the configured one`)
    .requiredOption('--to <database>', FORMS)
    .option('--json', 'one JSON object a line')
    .action(migrate);
}

async function migrate({ from, to, json }: MigrateFlags): Promise<void> {
  const config = readConfig();
  const [source, target] = [parsePlace('from', from, config), parsePlace('to', to, config)];
  if (describePlace(source) === describePlace(target))
    throw new Failure('invalid', 'Cannot copy: --from and --to must be two databases');
  if (source.databaseUrl === undefined && !hasDatabase(source.dataDir))
    throw new Failure('not_found', `Cannot copy: there is no database in "${source.dataDir}"`);
  await using undo = new AsyncDisposableStack();
  for (const place of [source, target]) if (place.databaseUrl === undefined) undo.use(lockDataDir(place.dataDir));
  const connections = {
    source: undo.use(await openTables(source, 'read')),
    target: undo.use(await openTables(target, 'write')),
  };

  const progress = createProgress(() => realWorld.monotonicMs());
  const move = findMove(source, target);
  const copied = await copyDatabase({
    source: connections.source,
    target: move === undefined ? connections.target : withMoveMark(connections.target, move),
    migrations,
    report: (table, rows) => progress(`${table}: ${rows} rows`),
  }).catch((error: unknown) => {
    throw move === undefined ? error : explainUsedTarget(error, move);
  });
  printCopied(copied, { json });
  if (move !== undefined)
    remark(
      `The old database is marked as moved by "${markerOf(move.dataDir)}": a start or a command without DATABASE_URL is refused while it is there.`,
    );
  remark('Copied and counted. The keys of the secrets are not in the database:');
  remark('give the service that uses the copy the same "keys" file in its data folder, or the same SECRET_KEYS.');
}

/** Undefined unless the copy replaces an embedded database. */
function findMove({ dataDir, databaseUrl }: Place, target: Place): Move | undefined {
  if (databaseUrl !== undefined || target.databaseUrl === undefined) return undefined;
  return { dataDir, target: nameDatabase(target.databaseUrl), world: realWorld };
}

function printCopied(
  copied: readonly { readonly table: string; readonly rows: number }[],
  { json }: Pick<MigrateFlags, 'json'>,
): void {
  if (json) for (const { table, rows } of copied) printJson({ table, rows });
  else
    print(
      formatTable(
        ['table', 'rows'],
        copied.map(({ table, rows }) => [table, rows]),
      ),
    );
}

function parsePlace(flag: string, text: string, { store }: Config): Place {
  if (text === 'sqlite') return { dataDir: store.dataDir, databaseUrl: undefined };
  if (text.startsWith('sqlite:')) return { dataDir: text.slice('sqlite:'.length), databaseUrl: undefined };
  if (text === 'postgres' && store.databaseUrl !== undefined) return store;
  if (/^postgres(ql)?:\/\//.test(text)) return { dataDir: '', databaseUrl: text };
  // The text itself is not shown: it may have a password.
  throw new Failure('invalid', `Cannot copy: --${flag} must be one of ${FORMS} (with DATABASE_URL set)`);
}

/** Returns only the name: the rest of the address may have a password. */
function nameDatabase(databaseUrl: string): string {
  const [, name = ''] = /\/([^/?@]+)(?:\?|$)/.exec(databaseUrl) ?? [];
  return `the PostgreSQL database "${name}"`;
}

function describePlace({ dataDir, databaseUrl }: Place): string {
  return databaseUrl ?? dataDir;
}

function refuseAbsentSource({ dataDir, databaseUrl }: Place): Failure {
  const where = databaseUrl === undefined ? `"${dataDir}"` : nameDatabase(databaseUrl);
  return new Failure('not_found', `Cannot copy: there is no store in ${where}`);
}

/** Opens a database and migrates its schema first, so that both schemas are the same. */
async function openTables(place: Place, access: 'read' | 'write'): Promise<TableConnection> {
  const log = createLog('warn');
  const ifAbsent = access === 'read' ? 'refuse' : 'create';
  const options = { ...place, poolSize: 1, migrations, log, world: realWorld, ifAbsent, ifCopied: 'open' } as const;
  const store = await openStore(options).catch((error: unknown) => {
    throw isFailure(error) && error.details.isAbsent ? refuseAbsentSource(place) : error;
  });
  await store[Symbol.asyncDispose]();
  return place.databaseUrl === undefined
    ? openSqliteTables(databaseFileOf(place.dataDir), access)
    : await openPostgresTables(place.databaseUrl, log);
}
