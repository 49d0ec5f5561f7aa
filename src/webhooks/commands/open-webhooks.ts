import { type CliStore, openCliStore } from '../../command-line/open-cli-store.ts';
import { openOperator, type ServiceOptions } from '../../command-line/open-operator.ts';
import { remark } from '../../command-line/output.ts';
import type { Store } from '../../database/store.ts';
import { Failure } from '../../errors.ts';
import type { Owners } from '../../identity.ts';
import type { AuditChange } from '../../operations/audit-change.ts';
import type { Operator } from '../../operations/call-on-store.ts';
import { type AddressGuard, createAddressGuard, type ExplainedRefusal } from '../addresses/address-guard.ts';
import { implementHooks } from '../administration/hook-operations.ts';
import { findHook } from '../management/manage-hook.ts';
import { createManagement, type Management } from '../management/management.ts';
import type { Repository } from '../repositories/repository.ts';

/** What commands about repositories and hooks work with, service up or down. */
export interface CliWebhooks {
  readonly cli: CliStore;
  readonly guard: AddressGuard;
  readonly management: Management;
  [Symbol.asyncDispose](): Promise<void>;
}

export type OpenWebhooks = () => Promise<CliWebhooks>;

/** What people and organizations own is another area's to say. */
export async function openWebhooks(createOwners: (store: Store) => Owners): Promise<CliWebhooks> {
  return createCliWebhooks(await openCliStore(), createOwners);
}

function createCliWebhooks(cli: CliStore, createOwners: (store: Store) => Owners): CliWebhooks {
  const { server, webhooks } = cli.config;
  const guard = createAddressGuard({ ...webhooks, onRefused: explainRefusal });
  const management = createManagement({
    store: cli.store,
    world: cli.world,
    cipher: cli.cipher,
    owners: createOwners(cli.store),
    baseUrl: server.baseUrl ?? `http://${server.host}:${server.httpPort}`,
    guard,
    // The workers of the service look a few times a second by themselves.
    wakeDeliveries: () => {},
  });
  return { cli, guard, management, [Symbol.asyncDispose]: () => cli[Symbol.asyncDispose]() };
}

/** Webhooks of all repositories: of a running service, or of the store of this machine. */
export type OpenAllHooks = (options: ServiceOptions) => Promise<Operator>;

export interface OtherAreas {
  readonly createOwners: (store: Store) => Owners;
  readonly auditChange: AuditChange;
}

/** What people own, and what the audit log records, are another area's to say. */
export function createAllHooksOpener(loadOthers: () => Promise<OtherAreas>): OpenAllHooks {
  return (options) =>
    openOperator({
      options,
      async implementOn(cli) {
        const { createOwners, auditChange } = await loadOthers();
        return implementHooks({ management: createCliWebhooks(cli, createOwners).management, auditChange });
      },
    });
}

/** An operator on this machine may see details that callers of the API do not get. */
function explainRefusal({ host, cause, reason }: ExplainedRefusal): void {
  const advice = ADVICE_OF[cause];
  if (cause === 'no answer') remark(`"${host}" cannot be resolved: ${reason}`);
  if (advice !== undefined) remark(`"${host}" is refused. ${advice}`);
}

const FOR_BOTH = 'for the service and for commands';

/** Only what a setting can change. */
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

export async function findRepository({ management }: CliWebhooks, text: string): Promise<Repository> {
  const { owner, name } = parseRepositoryName(text);
  return await management.access.find(owner, name);
}

/** By the words of a command: `owner/name` and the number of a webhook of it. */
export async function findWebhook(webhooks: CliWebhooks, text: string, id: string) {
  const repository = await findRepository(webhooks, text);
  const stored = await findHook(webhooks.management, repository, parseId(id));
  return { repository, stored, hook: stored.hook };
}

export function parseId(text: string): number {
  if (/^\d{1,16}$/.test(text) && Number.isSafeInteger(Number(text))) return Number(text);
  throw new Failure('invalid', `Cannot find it: the id must be a whole number, got "${text}"`);
}
