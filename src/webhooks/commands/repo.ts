/** Runs `trivet repo`: creates, lists and deletes repositories. */
import { Command } from 'commander';
import { addServiceOptions, type ServiceOptions } from '../../command-line/open-operator.ts';
import { formatTable, print, printJson, remark } from '../../command-line/output.ts';
import type { OutputOf } from '../../operations/operation.ts';
import {
  addRepository,
  listRepositories,
  removeRepository,
  showRepository,
} from '../administration/repository-operations.ts';
import { parseParameters } from '../parameters/parameters.ts';
import { repositoryParameters } from '../repositories/create-repository.ts';
import { type OpenWebhooks, parseRepositoryName } from './open-webhooks.ts';

interface Options extends ServiceOptions {
  readonly json?: true;
}

export function createRepoCommand(open: OpenWebhooks): Command {
  const command = new Command('repo').description('Create, list, show and delete repositories');
  const add = (words: string, description: string, json = 'print the repository as JSON') =>
    addServiceOptions(command.command(words).description(description).option('--json', json));
  add('create <owner/name>', 'Create a repository of a person or an organization')
    .option('--description <text>', 'what it is')
    .option('--private', 'only its owner sees it')
    .option('--default-branch <name>', 'its main branch')
    .option('--web-url <url>', 'where people see it')
    .option('--http-url <url>', 'where git fetches it over HTTP')
    .option('--ssh-url <url>', 'where git fetches it over SSH')
    .action(create.bind(undefined, open));
  add(
    'list [owner]',
    'List all repositories, or those of a person or an organization',
    'one JSON object a line',
  ).action(list.bind(undefined, open));
  add('show <owner/name>', 'Show a repository').action(show.bind(undefined, open));
  add('delete <owner/name>', 'Delete a repository with its webhooks', 'print JSON').action(
    remove.bind(undefined, open),
  );
  return command;
}

interface CreateOptions extends Options {
  readonly description?: string;
  readonly private?: boolean;
  readonly defaultBranch?: string;
  readonly webUrl?: string;
  readonly httpUrl?: string;
  readonly sshUrl?: string;
}

async function create(open: OpenWebhooks, text: string, options: CreateOptions): Promise<void> {
  const { owner, name } = parseRepositoryName(text);
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
  await using operator = await open(options);
  const repository = await operator.call(addRepository, { owner, ...parameters });
  if (options.json) return printJson(repository);
  print(`Created ${repository.full_name} (project_id ${repository.id})`);
}

type Page = OutputOf<typeof listRepositories>;

async function list(open: OpenWebhooks, owner: string | undefined, options: Options): Promise<void> {
  await using operator = await open(options);
  const repositories: Page['repositories'] = [];
  for (let after: number | null = 0; after !== null; ) {
    const page: Page = await operator.call(listRepositories, { owner, after, limit: 200 });
    repositories.push(...page.repositories);
    after = page.next;
  }
  if (options.json) {
    for (const repository of repositories) printJson(repository);
    return;
  }
  if (repositories.length === 0) remark('No repository');
  else print(formatRepositories(repositories));
}

function formatRepositories(repositories: Page['repositories']): string {
  const rows = repositories.map((repository) => [
    repository.id,
    repository.full_name,
    repository.private ? 'private' : 'public',
    repository.description,
  ]);
  return formatTable(['project_id', 'repository', 'visibility', 'description'], rows);
}

async function show(open: OpenWebhooks, text: string, options: Options): Promise<void> {
  const name = parseRepositoryName(text);
  await using operator = await open(options);
  const repository = await operator.call(showRepository, name);
  if (options.json) printJson(repository);
  else print(formatRepositories([repository]));
}

async function remove(open: OpenWebhooks, text: string, options: Options): Promise<void> {
  const name = parseRepositoryName(text);
  await using operator = await open(options);
  const removed = await operator.call(removeRepository, name);
  if (options.json) printJson(removed);
  else print(`Deleted ${removed.full_name}`);
}
