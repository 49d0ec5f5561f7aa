/** `trivet token`: personal access tokens, for whoever runs the service. Works whether the service is up or down. */
import { Command } from 'commander';
import {
  createPersonalToken,
  DEFAULT_PERSONAL_TOKEN_DAYS,
  revokePersonalToken,
} from '../authorization/personal-token.ts';
import { listPersonalTokens } from '../authorization/personal-token-store.ts';
import { isScope, SCOPES, type Scope } from '../authorization/scope.ts';
import { findUserByLogin, type User } from '../authorization/user-store.ts';
import { Failure } from '../errors.ts';
import { type CliStore, openCliStore } from './open-cli-store.ts';
import { formatTable, print, printJson } from './output.ts';

const DAY_MS = 86_400_000;

export function createTokenCommand(): Command {
  const command = new Command('token').description('create, list and revoke personal access tokens');
  command
    .command('create')
    .description('create a token; its text is printed this once, alone on standard output')
    .requiredOption('--user <login>', 'whom it speaks for')
    .requiredOption('--name <name>', 'what it is for')
    .requiredOption('--scope <name...>', `any of ${SCOPES.filter((scope) => scope !== 'openid').join(', ')}`)
    .option('--days <number>', 'after how many days it ends', String(DEFAULT_PERSONAL_TOKEN_DAYS))
    .option('--no-expiry', 'it does not end by itself')
    .action(create);
  command
    .command('list <login>')
    .description('list the tokens of a person')
    .option('--json', 'one JSON object a line')
    .action(list);
  command.command('revoke <login> <token-id>').description('revoke a token').action(revoke);
  return command;
}

interface CreateOptions {
  readonly user: string;
  readonly name: string;
  readonly scope: readonly string[];
  readonly days: string;
  readonly expiry: boolean;
}

async function create({ user: login, name, scope, days, expiry }: CreateOptions): Promise<void> {
  const scopes = checkScopes(scope.flatMap((names) => names.split(/[ ,]+/)).filter((part) => part !== ''));
  if (!/^[1-9]\d{0,4}$/.test(days))
    throw new Failure('invalid', `Cannot create the token: --days must be 1 to 99999, got "${days}"`);
  await using cli = await openCliStore();
  const user = await requireUser(cli, login);
  const expiresAtMs = expiry ? cli.world.nowMs() + Number(days) * DAY_MS : undefined;
  const { secret } = await createPersonalToken(cli.store, cli.world, { userId: user.id, name, scopes, expiresAtMs });
  print(secret);
}

function checkScopes(names: readonly string[]): Scope[] {
  const unknown = names.find((name) => !isScope(name));
  if (unknown === undefined) return names.filter(isScope);
  throw new Failure('invalid', `Cannot create the token: --scope must be of ${SCOPES.join(', ')}, got "${unknown}"`);
}

async function list(login: string, { json }: { readonly json?: true }): Promise<void> {
  await using cli = await openCliStore();
  const tokens = await listPersonalTokens(cli.store, (await requireUser(cli, login)).id);
  if (json) {
    for (const token of tokens) printJson(token);
    return;
  }
  const rows = tokens.map((token) => [
    token.tokenId,
    token.name,
    token.scopes.join(' '),
    `…${token.hint}`,
    formatTime(token.expiresAtMs),
    formatTime(token.lastUsedAtMs),
  ]);
  print(formatTable(['id', 'name', 'scopes', 'token', 'ends', 'last used'], rows));
}

async function revoke(login: string, tokenId: string): Promise<void> {
  await using cli = await openCliStore();
  const user = await requireUser(cli, login);
  await revokePersonalToken(cli.store, cli.world, { userId: user.id, tokenId });
  print('Revoked');
}

async function requireUser({ store }: CliStore, login: string): Promise<User> {
  const user = await findUserByLogin(store, login);
  if (user !== undefined) return user;
  throw new Failure('not_found', `Cannot find anybody with the login "${login}"`);
}

function formatTime(timeMs: number | undefined): string | undefined {
  return timeMs === undefined ? undefined : new Date(timeMs).toISOString();
}
