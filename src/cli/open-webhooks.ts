import { createOwners } from '../authorization/owners.ts';
import { Failure } from '../errors.ts';
import { type AddressGuard, createAddressGuard } from '../webhooks/address-guard.ts';
import { findHook } from '../webhooks/manage-hook.ts';
import { createManagement, type Management } from '../webhooks/management.ts';
import type { Repository } from '../webhooks/repository.ts';
import { type CliStore, openCliStore } from './open-cli-store.ts';
import { remark } from './output.ts';

/** What commands about repositories and hooks work with, service up or down. */
export interface CliWebhooks {
  readonly cli: CliStore;
  readonly guard: AddressGuard;
  readonly management: Management;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function openWebhooks(): Promise<CliWebhooks> {
  const cli = await openCliStore();
  const { server, webhooks } = cli.config;
  const guard = createAddressGuard({ ...webhooks, onRefused: explainRefusal });
  const management = createManagement({
    store: cli.store,
    world: cli.world,
    vault: cli.vault,
    owners: createOwners(cli.store),
    baseUrl: server.baseUrl ?? `http://${server.host}:${server.httpPort}`,
    guard,
    // The workers of the service look a few times a second by themselves.
    pokeDeliveries: () => {},
  });
  return { cli, guard, management, [Symbol.asyncDispose]: () => cli[Symbol.asyncDispose]() };
}

/** Whoever runs commands here may know what callers of the API are not told. */
function explainRefusal(host: string): void {
  const where = host === '' ? 'This url' : `"${host}"`;
  remark(`${where} is refused. To reach your own network, set WEBHOOK_ALLOW_CIDRS for the service and for commands.`);
}

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
