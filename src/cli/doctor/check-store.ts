/** The store: reachable, its schema, its keys, its clock, its first account. Opens it as every command does, which brings the schema up to date. */
import { listEvents } from '../../authorization/accounts/audit-store.ts';
import { hasUsers } from '../../authorization/accounts/user-store.ts';
import type { Config } from '../../config/config.ts';
import { migrations } from '../../database/migrations/list.ts';
import { openSecretCipher } from '../../database/startup/encryption-keys.ts';
import { hasDatabase, openStore } from '../../database/startup/open-store.ts';
import type { Store } from '../../database/store.ts';
import { describeError } from '../../errors.ts';
import { createLog } from '../../telemetry/log.ts';
import type { World } from '../../world.ts';
import { type Check, fail, ok, warn } from './check.ts';

export async function checkStore({ store: place }: Config, world: World): Promise<Check[]> {
  if (place.databaseUrl === undefined && !hasDatabase(place.dataDir))
    return [warn('store', `"${place.dataDir}" has none yet`, 'Start the service once: trivet serve')];
  try {
    const options = { ...place, migrations, ifAbsent: 'refuse', log: createLog('silent'), world } as const;
    await using store = await openStore(options);
    const keys = await checkKeys(store, place, world);
    return [
      ok('store', `${store.engine} answers, ${migrations.length} migrations`),
      keys,
      await checkClock(store, world),
      await checkFirstAccount(store),
    ];
  } catch (error) {
    return [fail('store', describeError(error), 'Check DATABASE_URL or TRIVET_DATA_DIR, and that the database runs')];
  }
}

async function checkKeys(store: Store, place: Config['store'], world: World): Promise<Check> {
  try {
    await openSecretCipher(store, { ...place, configured: place.secretKeys, world });
    return ok('keys', 'they open what is stored');
  } catch (error) {
    return fail('keys', describeError(error), 'Set SECRET_KEYS, or put back the file "keys" of this store');
  }
}

/** Times are written by clocks of this and other machines; none of them may be ahead by much. */
const AHEAD_MS = 5000;

async function checkClock(store: Store, world: World): Promise<Check> {
  const [newest] = await listEvents(store, { limit: 1 });
  const behindMs = (newest?.atMs ?? 0) - world.nowMs();
  const now = new Date(world.nowMs()).toISOString();
  if (behindMs <= AHEAD_MS) return ok('clock', now);
  const advice = 'Set the clock, for example by NTP: codes and tokens are judged by it';
  return fail('clock', `${now} is ${Math.round(behindMs / 1000)} s before the newest record of the audit log`, advice);
}

async function checkFirstAccount(store: Store): Promise<Check> {
  if (await hasUsers(store)) return ok('accounts', 'there is at least one');
  return warn(
    'accounts',
    'no person has one yet',
    'Open the set-up link that the service prints, or use trivet user create --admin',
  );
}
