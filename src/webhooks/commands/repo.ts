/** `trivet repo`: repositories that own webhooks. */
import { Command } from 'commander';
import { formatTable, print, printJson } from '../../command-line/output.ts';
import { Failure } from '../../errors.ts';
import { cancelEndpointStep } from '../delivery/queue/delivery-store.ts';
import { parseParameters } from '../parameters/parameters.ts';
import { createRepository, repositoryParameters } from '../repositories/create-repository.ts';
import { fullNameOf } from '../repositories/repository.ts';
import { toRepositoryJson } from '../repositories/repository-json.ts';
import { findRepository, type OpenWebhooks, parseRepositoryName } from './open-webhooks.ts';

export function createRepoCommand(open: OpenWebhooks): Command {
  const command = new Command('repo').description('Create, list and delete repositories');
  command
    .command('create <owner/name>')
    .description('Create a repository of a person or an organization')
    .option('--description <text>', 'what it is')
    .option('--private', 'only its owner sees it')
    .option('--default-branch <name>', 'its main branch')
    .option('--web-url <url>', 'where people see it')
    .option('--http-url <url>', 'where git fetches it over HTTP')
    .option('--ssh-url <url>', 'where git fetches it over SSH')
    .option('--json', 'print the repository as JSON')
    .action(create.bind(undefined, open));
  command
    .command('list <owner>')
    .description('List the repositories of a person or an organization')
    .option('--json', 'one JSON object a line')
    .action(list.bind(undefined, open));
  command
    .command('delete <owner/name>')
    .description('Delete a repository with its webhooks')
    .action(remove.bind(undefined, open));
  return command;
}

interface CreateOptions {
  readonly description?: string;
  readonly private?: boolean;
  readonly defaultBranch?: string;
  readonly webUrl?: string;
  readonly httpUrl?: string;
  readonly sshUrl?: string;
  readonly json?: boolean;
}

async function create(open: OpenWebhooks, text: string, options: CreateOptions): Promise<void> {
  const { owner: login, name } = parseRepositoryName(text);
  await using webhooks = await open();
  const { management } = webhooks;
  const owner = await management.owners.findOwner(login);
  if (owner === undefined)
    throw new Failure('not_found', `Cannot create the repository: there is no person or organization "${login}"`);
  const given = {
    name,
    path: name,
    description: options.description,
    private: options.private,
    default_branch: options.defaultBranch,
    web_url: options.webUrl,
    http_url: options.httpUrl,
    ssh_url: options.sshUrl,
  };
  const parameters = parseParameters(repositoryParameters, given, 'create the repository');
  const repository = await createRepository(management, owner, parameters);
  if (options.json) return printJson(toRepositoryJson(repository, management.baseUrl));
  print(`Created ${fullNameOf(repository)} (project_id ${repository.id})`);
}

async function list(open: OpenWebhooks, login: string, { json }: { json?: boolean }): Promise<void> {
  await using webhooks = await open();
  const { management } = webhooks;
  const owner = await management.owners.findOwner(login);
  if (owner === undefined)
    throw new Failure('not_found', `Cannot list the repositories: there is no person or organization "${login}"`);
  const repositories = await management.repositories.listOfOwner(owner.id, 10_000, 0);
  if (json) {
    for (const repository of repositories) printJson(toRepositoryJson(repository, management.baseUrl));
    return;
  }
  const rows = repositories.map((repository) => [
    repository.id,
    fullNameOf(repository),
    repository.isPrivate ? 'private' : 'public',
    repository.description,
  ]);
  print(formatTable(['project_id', 'repository', 'visibility', 'description'], rows));
}

async function remove(open: OpenWebhooks, text: string): Promise<void> {
  await using webhooks = await open();
  const repository = await findRepository(webhooks, text);
  const nowMs = webhooks.cli.world.nowMs();
  await webhooks.management.repositories.remove(repository.id, (hookId) => [cancelEndpointStep(hookId, nowMs)]);
  print(`Deleted ${fullNameOf(repository)}`);
}
