/**
 * Opens repositories, hooks and deliveries for the console, and checks that the caller administers them. A hook can only be opened
 * through its repository, which was checked.
 */
import { Failure, isFailure } from '../../errors.ts';
import type { Identity, Owner } from '../../identity.ts';
import type { Actor } from '../../operations/operation.ts';
import { EVENT_KINDS } from '../events/event-kind.ts';
import { decryptSecrets, PROFILE_NAMES } from '../hooks/hook.ts';
import {
  CHART_LIMIT,
  countHooksByRepository,
  readHold,
  readHookQueueStatus,
  readLastDay,
} from '../hooks/hook-status-store.ts';
import { listHooks, type StoredHook } from '../hooks/hook-store.ts';
import { BY_OWNER } from '../hooks/troubled-hooks-store.ts';
import { dropAbsent, type Parameters, parseId, parseParameters } from '../parameters/parameters.ts';
import { createRepository, repositoryParameters } from '../repositories/create-repository.ts';
import type { Repository } from '../repositories/repository.ts';
import { refuseUnknown } from '../repositories/repository-access.ts';
import { toRepositoryJson } from '../repositories/repository-json.ts';
import { countRepositoriesOfOwner, listRepositoriesOfOwner } from '../repositories/repository-store.ts';
import { toHookJson } from './hook-json.ts';
import { readDelivery, readDeliveryPage, replaySince, sendAgain, sendWaiting } from './manage-delivery.ts';
import {
  createHook,
  deleteHook,
  findHook,
  hookChangeParameters,
  hookSettingParameters,
  MAX_HOOKS,
  newHookParameters,
  updateHook,
} from './manage-hook.ts';
import type { SendingDependencies } from './management.ts';
import { listTestEventsOf, testHook, testParameters } from './test-hook.ts';
import { readWebhookOverview } from './webhook-overview.ts';

/** A signed-in person and the address of their client. */
type Caller = Pick<Identity, 'userId' | 'login' | 'isAdmin'> & Pick<Actor, 'address'>;

/** How many repositories of one owner a page with several owners lists at most. */
const LISTED_REPOSITORIES = 50;
const KEY_BYTES = 32;

export type ConsoleHooks = ReturnType<typeof createConsoleHooks>;

export function createConsoleHooks(dependencies: SendingDependencies) {
  return {
    /** The overview: of all webhooks for an administrator of the service, of their own webhooks for others. */
    readOverview: (caller: Caller) => readWebhookOverview(dependencies, caller),
    profiles: PROFILE_NAMES,
    eventKinds: EVENT_KINDS,
    /** The caller first, then organizations that the caller owns. */
    listOwners: async (caller: Caller) =>
      await Promise.all(
        (await dependencies.owners.listAdministered(caller)).map((owner) => describeOwner(dependencies, owner, 1)),
      ),
    /** Throws `not_found` for an owner that is neither the caller nor an organization that the caller owns. */
    async openOwner(caller: Caller, login: string, page: number) {
      return await describeOwner(dependencies, await findOwner(dependencies, caller, login), page);
    },
    async createRepository(caller: Caller, login: string, values: Parameters) {
      const place = { owner: await findOwner(dependencies, caller, login), actor: caller };
      const parameters = parseParameters(repositoryParameters, dropAbsent(values), 'create the repository');
      return toRepositoryJson(await createRepository(dependencies, place, parameters), dependencies.baseUrl);
    },
    /** Throws `not_found` for a repository that the caller does not administer, whether it is public or does not exist. */
    async openRepository(caller: Caller, owner: string, path: string) {
      const repository = await findRepository(dependencies, caller, owner, path);
      return openRepository(dependencies, caller, repository);
    },
  };
}

async function findOwner(dependencies: SendingDependencies, caller: Caller, login: string): Promise<Owner> {
  const owner = await dependencies.owners.findOwner(login);
  if (owner !== undefined && (await dependencies.owners.canAdminister(caller, owner))) return owner;
  throw new Failure('not_found', `Cannot find the owner "${login}"`);
}

async function findRepository(
  dependencies: SendingDependencies,
  caller: Caller,
  owner: string,
  path: string,
): Promise<Repository> {
  try {
    return await dependencies.access.findAdministered(caller, owner, path);
  } catch (error) {
    // A caller who may not administer the repository must not learn that it exists.
    if (isFailure(error) && error.code === 'forbidden') throw refuseUnknown(owner, path);
    throw error;
  }
}

async function describeOwner(dependencies: SendingDependencies, owner: Owner, page: number) {
  const [repositories, total, counts] = await Promise.all([
    listRepositoriesOfOwner(dependencies.store, owner.id, {
      size: LISTED_REPOSITORIES,
      offset: (page - 1) * LISTED_REPOSITORIES,
    }),
    countRepositoriesOfOwner(dependencies.store, owner.id),
    countHooksByRepository(dependencies.store, owner.id),
  ]);
  return {
    kind: owner.kind,
    login: owner.login,
    name: owner.name,
    total,
    pages: Math.max(1, Math.ceil(total / LISTED_REPOSITORIES)),
    repositories: repositories.map((repository) => ({
      ...toRepositoryJson({ ...repository, ownerLogin: owner.login }, dependencies.baseUrl),
      counts: counts.get(repository.id) ?? { hooks: 0, disabled: 0, switchedOff: 0, failing: 0 },
    })),
  };
}

function openRepository(dependencies: SendingDependencies, caller: Caller, repository: Repository) {
  return {
    repository: toRepositoryJson(repository, dependencies.baseUrl),
    async listHooks() {
      const hooks = await listHooks(dependencies.store, repository.id, { size: MAX_HOOKS, offset: 0 });
      return await Promise.all(hooks.map((stored) => describeHook(dependencies, stored)));
    },
    async createHook(values: Parameters) {
      const parameters = parseParameters(newHookParameters, dropAbsent(values), 'create the webhook');
      return await describeHook(
        dependencies,
        await createHook(dependencies, { repository, actor: caller }, parameters),
      );
    },
    /** Throws `not_found` for a hook of another repository. */
    async openHook(id: string) {
      return openHook(dependencies, {
        caller,
        repository,
        stored: await findHook(dependencies, repository, parseId(id, 'id')),
      });
    },
  };
}

interface OpenHook {
  readonly caller: Caller;
  readonly repository: Repository;
  readonly stored: StoredHook;
}

function openHook(dependencies: SendingDependencies, { caller, repository, stored }: OpenHook) {
  const { hook } = stored;
  const target = { repository, stored, actor: caller };
  const change = async (schema: typeof hookChangeParameters | typeof hookSettingParameters, values: Parameters) => {
    const parameters = parseParameters(schema, dropAbsent(values), 'update the webhook');
    await updateHook(dependencies, target, parameters);
  };
  return {
    describe: () => describeHook(dependencies, stored),
    /** The test events that can be sent to the hook; the first is the default. */
    testEvents: listTestEventsOf(dependencies, { repository, stored }),
    /** Absent fields stay as they are; a url that is given must not be blank. */
    change: (values: Parameters) => change('url' in values ? hookChangeParameters : hookSettingParameters, values),
    switch: (active: boolean) => change(hookSettingParameters, { active }),
    /** Sets a new key, a random one unless given. The former key also signs for one more day. */
    rotateKey: (key: string) =>
      change(hookSettingParameters, {
        password: key || Buffer.from(dependencies.world.randomBytes(KEY_BYTES)).toString('base64url'),
      }),
    removeKey: () => change(hookSettingParameters, { remove_password: true }),
    remove: () => deleteHook(dependencies, target),
    /** Sends a test. Returns the id of the delivery once the only attempt has ended. */
    test: (values: Parameters) => {
      const { event } = parseParameters(testParameters, dropAbsent(values), 'test the webhook');
      return testHook(dependencies, { caller, repository, stored, event });
    },
    listDeliveries: (values: Parameters) => readDeliveryPage(dependencies, hook.id, dropAbsent(values)),
    readDelivery: (id: string) => readDelivery(dependencies, hook.id, id),
    sendAgain: (id: string) => sendAgain(dependencies, hook, id),
    sendWaiting: () => sendWaiting(dependencies, hook),
    replaySince: (values: Parameters) => replaySince(dependencies, hook, dropAbsent(values)),
  };
}

async function describeHook(dependencies: SendingDependencies, stored: StoredHook) {
  const nowMs = dependencies.world.nowMs();
  const { hook, encrypted } = stored;
  // Read first: the reads of many hooks take turns of the event loop, and the waiting deliveries are counted only after that.
  const lastDay = await readLastDay(dependencies.store, hook.id, nowMs);
  const [hookQueue, { pause }] = await Promise.all([
    readHookQueueStatus(dependencies.store, hook.id),
    readHold(dependencies.store, hook.id, nowMs),
  ]);
  const { previous } = decryptSecrets(dependencies.cipher, hook.id, encrypted, nowMs);
  return {
    ...toHookJson(stored, { cipher: dependencies.cipher, nowMs, pause }),
    isSwitchedOff: hook.disabledReason === BY_OWNER,
    hookQueue,
    lastDay,
    isChartCut: lastDay.reduce((sum, hour) => sum + hour.succeeded + hour.failed + hour.waiting, 0) >= CHART_LIMIT,
    /** The number of previous secrets that still sign; the last of them signs until the time below. */
    formerKeys: previous.length,
    formerKeyUntilMs: previous.length === 0 ? null : Math.max(...previous.map(({ untilMs }) => untilMs)),
  };
}
