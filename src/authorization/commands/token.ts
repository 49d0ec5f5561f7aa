/** Runs `trivet token`: creates personal access tokens on the store only; lists and revokes them at a running service too. */
import { Command } from 'commander';
import { type CliStore, openCliStore } from '../../command-line/open-cli-store.ts';
import { addRefusedServiceOptions, refuseService, type ServiceOptions } from '../../command-line/open-operator.ts';
import { print, printJson, printTable, remark } from '../../command-line/output.ts';
import { type End, parseEnd } from '../../command-line/time-option.ts';
import type { Store } from '../../database/store.ts';
import { Failure } from '../../errors.ts';
import type { FindUnknownRepositories, Owners } from '../../identity.ts';
import { createOwners } from '../accounts/owners.ts';
import { findUserByLogin, type User } from '../accounts/user-store.ts';
import { listTokens, revokeToken } from '../administration/token-operations.ts';
import { API_SCOPES, isOpenIdScope, isScope, type Scope } from '../applications/scope.ts';
import { createPersonalToken, DEFAULT_PERSONAL_TOKEN_DAYS } from '../tokens/personal-token.ts';
import { type AnswerOptions, addAnswerOptions, openAdministration } from './open-administration.ts';

const DAY_MS = 86_400_000;
const EXAMPLES = '12h, 90d, 2027-01-31 or never';

/** Loads the check of repository names, which belongs to another area. */
export type LoadRepositoryCheck = () => Promise<(store: Store, owners: Owners) => FindUnknownRepositories>;

export function createTokenCommand(loadRepositoryCheck: LoadRepositoryCheck): Command {
  const command = new Command('token').description('Create, list and revoke personal access tokens');
  addRefusedServiceOptions(command.command('create'))
    .description('Create a token (on the store only), and print only its text on standard output, this once')
    .requiredOption('--user <login>', 'the person for whom it acts')
    .requiredOption('--name <name>', 'what it is for')
    .requiredOption('--scope <name...>', `any of ${API_SCOPES.join(', ')}`)
    .option('--repo, --repository <owner/name...>', 'the only repositories that it reaches')
    .option('--expires <time>', `when it expires: ${EXAMPLES} (default: ${DEFAULT_PERSONAL_TOKEN_DAYS}d)`, parseEnd)
    .option('--json', 'one JSON object with the token')
    .action(create.bind(undefined, loadRepositoryCheck));
  addAnswerOptions(
    command.command('list <login>').description('List the tokens of a person'),
    'one JSON object a line',
  ).action(list);
  addAnswerOptions(command.command('revoke <login> <token-id>').description('Revoke a token')).action(revoke);
  return command;
}

interface CreateOptions extends ServiceOptions {
  readonly user: string;
  readonly name: string;
  readonly scope: readonly string[];
  readonly repository?: readonly string[];
  readonly expires?: End;
  readonly json?: true;
}

/** Why the administration API does not create tokens. */
const STORE_ONLY =
  'Cannot create a token for another person at a service: an administrator could act as any person, and that person would see no trace of it. Run the command on the store, or let the person make it: on the page Personal access tokens, or by POST /api/v5/user/access_tokens';

async function create(loadRepositoryCheck: LoadRepositoryCheck, options: CreateOptions): Promise<void> {
  const { user: login, name, scope, repository, expires, json } = options;
  const scopes = checkScopes(scope.flatMap((names) => names.split(/[ ,]+/)).filter((part) => part !== ''));
  await refuseService(options, STORE_ONLY);
  await using cli = await openCliStore();
  const user = await requireUser(cli, login);
  const nowMs = cli.world.nowMs();
  const endMs = expires?.(nowMs) ?? nowMs + DEFAULT_PERSONAL_TOKEN_DAYS * DAY_MS;
  const expiresAtMs = Number.isFinite(endMs) ? endMs : undefined;
  const repositories = repository?.flatMap((names) => names.split(/[ ,]+/)).filter((part) => part !== '');
  const findUnknownRepositories = (await loadRepositoryCheck())(cli.store, createOwners(cli.store));
  const form = { userId: user.id, name, scopes, repositories, expiresAtMs, findUnknownRepositories, isByCommand: true };
  const { token, secret, unknownRepositories } = await createPersonalToken(cli.store, cli.world, form);
  if (!json) {
    for (const one of unknownRepositories) remark(describeUnknown(one, login));
    print(secret);
    return;
  }
  const { tokenId } = token;
  const older = { id: tokenId, scope: scopes.join(' '), expires_at: formatTime(expiresAtMs) ?? null };
  printJson({ token: secret, tokenId, name, scopes, expiresAtMs, unknownRepositories, ...older });
}

function describeUnknown(repository: string, login: string): string {
  return `Warning: "${repository}" does not exist, or ${login} may not see it. The token reaches nothing there until the repository exists`;
}

function checkScopes(names: readonly string[]): Scope[] {
  const unknown = names.find((name) => !isScope(name) || isOpenIdScope(name));
  if (unknown === undefined) return names.filter(isScope);
  throw new Failure(
    'invalid',
    `Cannot create the token: --scope must be any of ${API_SCOPES.join(', ')}, got "${unknown}"`,
  );
}

async function list(login: string, options: AnswerOptions): Promise<void> {
  await using operator = await openAdministration(options);
  const { tokens } = await operator.call(listTokens, { login });
  if (options.json) {
    for (const token of tokens) printJson(token);
    return;
  }
  const rows = tokens.map((token) => [
    token.tokenId,
    token.name,
    token.scopes.join(' '),
    token.repositories?.join(' '),
    `…${token.hint}`,
    formatTime(token.expiresAtMs),
    formatTime(token.lastUsedAtMs),
  ]);
  printTable(['id', 'name', 'scopes', 'repositories', 'token', 'ends', 'last used'], rows, `No token of ${login}`);
}

async function revoke(login: string, tokenId: string, options: AnswerOptions): Promise<void> {
  await using operator = await openAdministration(options);
  const revoked = await operator.call(revokeToken, { login, tokenId });
  if (options.json) printJson(revoked);
  else print('Revoked');
}

async function requireUser({ store }: CliStore, login: string): Promise<User> {
  const user = await findUserByLogin(store, login);
  if (user !== undefined) return user;
  throw new Failure('not_found', `There is no person with the login "${login}"`);
}

function formatTime(timeMs: number | undefined): string | undefined {
  return timeMs === undefined ? undefined : new Date(timeMs).toISOString();
}
