/** `trivet user`: people, for operators. Works whether the service is up or down. */
import { text } from 'node:stream/consumers';
import { Command } from 'commander';
import { type CliStore, openCliStore } from '../../command-line/open-cli-store.ts';
import { formatTable, print, printJson } from '../../command-line/output.ts';
import type { Step } from '../../database/store.ts';
import { Failure } from '../../errors.ts';
import { auditStep } from '../accounts/audit-store.ts';
import { verifyEmail } from '../accounts/email-store.ts';
import { setPasswordStep } from '../accounts/password-store.ts';
import { endOtherSessionsStep } from '../accounts/session-store.ts';
import { deleteTotpSteps } from '../accounts/totp-store.ts';
import {
  createUser,
  disableUserStep,
  enableUserStep,
  findUserByLogin,
  listUsers,
  raiseCredentialGenerationStep,
  setAdminStep,
  type User,
} from '../accounts/user-store.ts';
import { checkNewPassword, hashPassword } from '../sign-in/password.ts';
import { deletePersonalTokensStep } from '../tokens/personal-token-store.ts';

export function createUserCommand(): Command {
  const command = new Command('user').description('Create, list and change people');
  command
    .command('create')
    .description('Create an account')
    .requiredOption('--login <login>', 'what stands for the person in paths')
    .requiredOption('--name <name>', 'how pages call the person')
    .option('--email <address>', 'email address')
    .option('--password-stdin', 'read the password from standard input; without it the person has none yet')
    .option('--admin', 'lets the person administer the service')
    .action(create);
  command.command('list').description('List everybody').option('--json', 'one JSON object a line').action(list);
  command.command('disable <login>').description('End the sessions and tokens of a person').action(disable);
  command.command('enable <login>').description('Let a disabled person in again').action(enable);
  command
    .command('email <login> <address>')
    .description('Set the email address of a person as verified, so that applications see it')
    .action(setEmail);
  command
    .command('password <login>')
    .description('Set a new password, read from standard input, and end the sessions and the access of applications')
    .requiredOption('--password-stdin', 'read the password from standard input')
    .option('--delete-tokens', 'delete the personal access tokens too')
    .action(resetPassword);
  command
    .command('reset-second-step <login>')
    .description(
      'Turn off the authenticator app of a person who lost it, and end the sessions and the access of applications',
    )
    .action(resetSecondStep);
  command
    .command('admin <login>')
    .description('Let a person administer the service, or no longer')
    .option('--revoke', 'no longer')
    .action(setAdmin);
  return command;
}

interface CreateOptions {
  readonly login: string;
  readonly name: string;
  readonly email?: string;
  readonly passwordStdin?: true;
  readonly admin?: true;
}

async function create({ login, name, email, passwordStdin, admin }: CreateOptions): Promise<void> {
  const passwordHash = passwordStdin ? await readPasswordHash(login) : null;
  await using cli = await openCliStore({ ifAbsent: 'create' });
  const isAdmin = admin === true;
  const given = { login, name, email: email ?? null, isEmailVerified: email !== undefined, isAdmin, passwordHash };
  const user = await createUser(cli.store, cli.world, given, (userId) => [
    auditStep({ kind: 'user_created', userId, details: BY_HAND }, cli.world.nowMs()),
  ]);
  print(`Created ${user.login} (${user.id})`);
}

/** In the audit log, what was done here has no person as its actor. */
const BY_HAND = { by: 'command line' };

async function readPasswordHash(login: string): Promise<string> {
  const password = (await text(process.stdin)).replace(/\r?\n$/, '');
  checkNewPassword(password, { login });
  return hashPassword(password);
}

const PAGE_SIZE = 200;

async function list({ json }: { readonly json?: true }): Promise<void> {
  await using cli = await openCliStore();
  const users: User[] = [];
  for (;;) {
    const page = await listUsers(cli.store, PAGE_SIZE, users.at(-1)?.login);
    users.push(...page);
    if (page.length < PAGE_SIZE) break;
  }
  if (json) {
    for (const user of users) printJson(user);
    return;
  }
  const rows = users.map((user) => [user.login, user.name, user.email, describeState(user), user.id]);
  print(formatTable(['login', 'name', 'email', 'state', 'id'], rows));
}

function describeState({ disabledAtMs, isAdmin }: User): string {
  if (disabledAtMs !== null) return 'disabled';
  return isAdmin ? 'admin' : 'active';
}

async function disable(login: string): Promise<void> {
  await change(login, 'user_disabled', (user, { world }) => [
    disableUserStep(user.id, world.nowMs()),
    endOtherSessionsStep(user.id, ''),
  ]);
  print(`Disabled ${login}: sessions have ended and tokens stopped working`);
}

async function enable(login: string): Promise<void> {
  await change(login, 'user_enabled', (user) => [enableUserStep(user.id)]);
  print(`Enabled ${login}`);
}

async function resetPassword(login: string, { deleteTokens }: { readonly deleteTokens?: true }): Promise<void> {
  const hash = await readPasswordHash(login);
  await change(login, 'password_changed', (user, { world }) => [
    setPasswordStep(user.id, hash, world.nowMs()),
    endOtherSessionsStep(user.id, ''),
    ...(deleteTokens ? [deletePersonalTokensStep(user.id)] : []),
  ]);
  const tokens = deleteTokens ? 'and personal access tokens are deleted' : 'personal access tokens stay';
  print(`Set the password of ${login}: sessions and the access of applications have ended, ${tokens}`);
}

async function setEmail(login: string, email: string): Promise<void> {
  await using cli = await openCliStore();
  const user = await requireUser(cli, login);
  const event = { kind: 'user_changed', userId: user.id, details: { ...BY_HAND, what: 'email' } } as const;
  await verifyEmail(cli.store, { userId: user.id, email, steps: [auditStep(event, cli.world.nowMs())] });
  print(`The email address of ${login} is ${email}, verified`);
}

async function resetSecondStep(login: string): Promise<void> {
  await change(login, 'totp_disabled', (user) => [
    ...deleteTotpSteps(user.id),
    raiseCredentialGenerationStep(user.id),
    endOtherSessionsStep(user.id, ''),
  ]);
  print(
    `${login} signs in without a second step until they set one up again; sessions and the access of applications have ended`,
  );
}

async function setAdmin(login: string, { revoke }: { readonly revoke?: true }): Promise<void> {
  await change(login, 'user_changed', (user) => [setAdminStep(user.id, revoke ? 0 : 1)]);
  print(revoke ? `${login} no longer administers the service` : `${login} administers the service`);
}

type UserEvent = 'user_disabled' | 'user_enabled' | 'user_changed' | 'password_changed' | 'totp_disabled';

async function change(login: string, kind: UserEvent, stepsFor: (user: User, cli: CliStore) => Step[]): Promise<void> {
  await using cli = await openCliStore();
  const user = await requireUser(cli, login);
  const event = auditStep({ kind, userId: user.id, details: BY_HAND }, cli.world.nowMs());
  await cli.store.writeAll([...stepsFor(user, cli), event]);
}

async function requireUser({ store }: CliStore, login: string): Promise<User> {
  const user = await findUserByLogin(store, login);
  if (user !== undefined) return user;
  throw new Failure('not_found', `Cannot change the user: there is no person with the login "${login}"`);
}
