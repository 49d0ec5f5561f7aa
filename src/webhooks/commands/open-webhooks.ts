/** Opens repositories, webhooks and events for a command, of a running service or of the store. */
import type { CliStore } from '../../command-line/open-cli-store.ts';
import { openOperator, type ServiceOptions } from '../../command-line/open-operator.ts';
import { remark } from '../../command-line/output.ts';
import type { Store } from '../../database/store.ts';
import { Failure } from '../../errors.ts';
import type { Owners } from '../../identity.ts';
import { toUrlHost } from '../../ip/ip-address.ts';
import type { AuditChange } from '../../operations/audit-change.ts';
import type { Operator } from '../../operations/call-on-store.ts';
import { type AddressGuard, createAddressGuard, type ExplainedRefusal } from '../addresses/address-guard.ts';
import type { HookDependencies } from '../administration/implement-hooks.ts';
import { implementWebhooks } from '../administration/implement-webhooks.ts';
import { createManagement, type SendingDependencies } from '../management/management.ts';

/** Opens a running service, or the store of this machine, whether the service runs or not. */
export type OpenWebhooks = (options: ServiceOptions, how?: Pick<HookDependencies, 'passwords'>) => Promise<Operator>;

export interface OtherAreas {
  readonly createOwners: (store: Store) => Owners;
  readonly auditChange: AuditChange;
}

/** `loadOthers` loads the area that has the owners of repositories and the audit log. */
export function createWebhooksOpener(loadOthers: () => Promise<OtherAreas>): OpenWebhooks {
  return ({ service, token }, { passwords } = { passwords: 'shown' }) =>
    openOperator({
      // Only these options: the --url of a command may be the address of a receiver.
      options: { ...(service !== undefined && { service }), ...(token !== undefined && { token }) },
      implementOn: async (cli) => implementWebhooks(createManagementOnStore(cli, await loadOthers()), { passwords }),
    });
}

function createManagementOnStore(cli: CliStore, others: OtherAreas): SendingDependencies {
  const { server, webhooks } = cli.config;
  const guard = createAddressGuard({ ...webhooks, onRefused: explainRefusal });
  const management = createManagement({
    store: cli.store,
    world: cli.world,
    log: cli.log,
    cipher: cli.cipher,
    owners: others.createOwners(cli.store),
    auditChange: others.auditChange,
    baseUrl: server.baseUrl ?? `http://${toUrlHost(server.host)}:${server.httpPort}`,
    guard,
    noticeRepository: webhooks.noticeRepository,
    repositoriesPerOwner: webhooks.repositoriesPerOwner,
    // No wake is needed: the workers of the service scan a few times a second.
    wakeDeliveries: () => {},
    takeCommitted: () => {},
  });
  return { ...management, manual: sendOnStore(cli, guard) };
}

/** Loads the sender only when a command sends: it is a third of the code that a command about webhooks would load. */
function sendOnStore(cli: CliStore, guard: AddressGuard): SendingDependencies['manual'] {
  const load = async () => (await import('./attempts-on-store.ts')).createAttemptsOnStore(cli, guard);
  return {
    test: async (deliveryId, deadlineMs) => await (await load()).test(deliveryId, deadlineMs),
    redeliver: async (hookId, deliveryId) => await (await load()).redeliver(hookId, deliveryId),
  };
}

/** An operator on this machine may see details that callers of the API do not get. */
function explainRefusal({ host, cause, reason }: ExplainedRefusal): void {
  const advice = ADVICE_OF[cause];
  if (cause === 'no answer') remark(`"${host}" cannot be resolved: ${reason}`);
  if (advice !== undefined) remark(`"${host}" is refused. ${advice}`);
}

const FOR_BOTH = 'for the service and for commands';

/** The advice for each refusal that a setting can lift. */
const ADVICE_OF: Readonly<Partial<Record<ExplainedRefusal['cause'], string>>> = {
  localhost: `Write 127.0.0.1 instead, and set WEBHOOK_ALLOW_CIDRS=127.0.0.0/8 ${FOR_BOTH}.`,
  'private name': `To reach names of your own network, set WEBHOOK_ALLOW_CIDRS and WEBHOOK_ALLOW_HOSTS ${FOR_BOTH}.`,
  'private address': `To reach your own network, set WEBHOOK_ALLOW_CIDRS ${FOR_BOTH}.`,
  'private answer': `It resolves to an address that is not public. To reach your own network, set WEBHOOK_ALLOW_CIDRS ${FOR_BOTH}.`,
};

export interface RepositoryName {
  readonly owner: string;
  readonly name: string;
}

/** `owner/name`, as the argument of a command. */
export function parseRepositoryName(text: string): RepositoryName {
  const [owner = '', name = '', ...rest] = text.split('/');
  if (owner !== '' && name !== '' && rest.length === 0) return { owner, name };
  throw new Failure('invalid', `Cannot find the repository: it must be OWNER/NAME, got "${text}"`);
}

/** Finds a webhook by the words of a command: `owner/name` and the number of a webhook of it. */
export function parseHookReference(repository: string, id: string) {
  parseRepositoryName(repository);
  return { repository, id: parseId(id) };
}

export function parseId(text: string): number {
  if (/^\d{1,16}$/.test(text) && Number.isSafeInteger(Number(text))) return Number(text);
  throw new Failure('invalid', `Cannot find it: the id must be a whole number, got "${text}"`);
}
