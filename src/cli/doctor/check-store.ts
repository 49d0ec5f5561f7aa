/** Checks the store for `trivet doctor` without changing it: reachable, schema, keys, clock, first account. */

import { canAnAdministratorSignIn } from '../../authorization/accounts/administrator-store.ts';
import { listEvents } from '../../authorization/accounts/audit-store.ts';
import { hasAdministrators, hasUsers } from '../../authorization/accounts/user-store.ts';
import type { Config } from '../../config/config.ts';
import { migrations } from '../../database/migrations/list.ts';
import { checkStoredKeys } from '../../database/startup/encryption-keys.ts';
import { type InspectedStore, inspectStore } from '../../database/startup/inspect-store.ts';
import { withStoreClock } from '../../database/store-clock.ts';
import { describeError } from '../../errors.ts';
import { createLog } from '../../telemetry/log.ts';
import type { World } from '../../world.ts';
import { type Check, fail, ok, warn } from './check.ts';
import { checkNotices } from './check-notices.ts';

export async function checkStore(
  { store: place, webhooks, mail, authorization }: Config,
  machine: World,
): Promise<Check[]> {
  try {
    await using store = await inspectStore({ ...place, migrations, log: createLog('silent'), world: machine });
    if (store === undefined) {
      const where = place.databaseUrl === undefined ? `"${place.dataDir}"` : 'the database of DATABASE_URL';
      return [warn('store', `${where} has none yet`, 'Start the service once: trivet serve')];
    }
    const world = withStoreClock(machine, store);
    return [
      checkSchema(store),
      ...checkWritable(store),
      await tryCheck('keys', () => checkKeys(store, place, world)),
      await tryCheck('clock', () => checkClock(store, world)),
      await tryCheck('accounts', () => checkFirstAccount(store, authorization.upstreamIssuer)),
      await tryCheck('notices', () =>
        checkNotices(store, { fullName: webhooks.noticeRepository, hasMail: mail.host !== undefined }),
      ),
    ];
  } catch (error) {
    const advice =
      'Check DATABASE_URL or TRIVET_DATA_DIR, that the database runs, and that this program is as new as the service';
    return [fail('store', describeError(error), advice)];
  }
}

function checkSchema({ engine, missing }: InspectedStore): Check {
  if (missing.length === 0) return ok('store', `${engine} answers, ${migrations.length} migrations`);
  const names = missing.map(({ id, name }) => `${id}-${name}`).join(', ');
  const found = `${engine} answers, ${missing.length} of ${migrations.length} migrations are missing: ${names}`;
  return warn('store', found, 'The service applies them when it starts, as every other command does');
}

const READ_ONLY = {
  standby: fail(
    'writes',
    'PostgreSQL takes no writes: it is a standby',
    'Name the primary in DATABASE_URL, or all hosts of the cluster, and the service finds it',
  ),
  'read-only': fail(
    'writes',
    'PostgreSQL takes no writes: default_transaction_read_only is on',
    "Find where it is set: SELECT source, sourcefile FROM pg_settings WHERE name = 'default_transaction_read_only'",
  ),
};

function checkWritable({ readOnlyReason }: InspectedStore): Check[] {
  return readOnlyReason === undefined ? [] : [READ_ONLY[readOnlyReason]];
}

/** Reports a check that throws, for example because an older store lacks a table. */
async function tryCheck(name: string, check: () => Promise<Check>): Promise<Check> {
  try {
    return await check();
  } catch (error) {
    return warn(name, `it cannot be checked: ${describeError(error)}`, 'Look again when the service has started once');
  }
}

type Reader = Pick<InspectedStore, 'read'>;

async function checkKeys(store: Reader, place: Config['store'], world: World): Promise<Check> {
  try {
    const isUsed = await checkStoredKeys(store, { ...place, configured: place.secretKeys, world });
    return ok('keys', isUsed ? 'they open what is stored' : 'nothing is encrypted yet');
  } catch (error) {
    return fail('keys', describeError(error), 'Set SECRET_KEYS, or put back the file "keys" of this store');
  }
}

/** Processes on one PostgreSQL use the time of its server; an embedded store has the time of this machine. */
const AHEAD_MS = 5000;

async function checkClock(store: Reader & Pick<InspectedStore, 'engine'>, world: World): Promise<Check> {
  const [newest] = await listEvents(store, { limit: 1 });
  const behindMs = (newest?.atMs ?? 0) - world.nowMs();
  const now = new Date(world.nowMs()).toISOString();
  if (behindMs <= AHEAD_MS) return ok('clock', now);
  const whose = store.engine === 'postgres' ? 'the clock of the database server' : 'the clock';
  const advice = `Set ${whose}, for example by NTP: codes and tokens are judged by it`;
  return fail('clock', `${now} is ${Math.round(behindMs / 1000)} s before the newest record of the audit log`, advice);
}

async function checkFirstAccount(store: Reader, upstreamIssuer: string | undefined): Promise<Check> {
  if (await canAnAdministratorSignIn(store, upstreamIssuer)) return ok('accounts', 'an administrator can sign in');
  if (await hasAdministrators(store))
    return warn(
      'accounts',
      'no administrator can sign in',
      'Enable one who is disabled: trivet user enable LOGIN. Make a link for one without a way in: trivet user password-link LOGIN',
    );
  if (await hasUsers(store))
    return warn(
      'accounts',
      'there is no administrator',
      'Open the set-up link that the service prints when it starts, or name one: trivet user admin LOGIN',
    );
  return warn(
    'accounts',
    'no person has one yet',
    'Open the set-up link that the service prints, or use trivet user create --admin --password-stdin',
  );
}
