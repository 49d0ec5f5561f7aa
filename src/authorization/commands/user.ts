/** Runs `trivet user`: creates, invites, disables and resets people. */
import { text } from 'node:stream/consumers';
import { Command, Option } from 'commander';
import { formatTable, print, printJson, remark } from '../../command-line/output.ts';
import type { InputOf, OutputOf } from '../../operations/operation.ts';
import { invite, orderLink } from '../administration/invitation-operations.ts';
import {
  addPerson,
  changeEmail,
  changePassword,
  changeRole,
  disable,
  enable,
  listPeople,
  removeSecondStep,
  showPerson,
} from '../administration/people-operations.ts';
import { PERSON_STATES } from '../administration/people-store.ts';
import type { Person } from '../administration/person.ts';
import { checkNewPassword } from '../sign-in/password.ts';
import { type AnswerOptions, addAnswerOptions, openAdministration } from './open-administration.ts';

export function createUserCommand(): Command {
  const command = new Command('user').description('Create, list and change people');
  const add = (words: string, description: string) => addAnswerOptions(command.command(words).description(description));
  add('create', 'Create an account')
    .requiredOption('--login <login>', 'login, which is also in paths')
    .requiredOption('--name <name>', 'name of the person on pages')
    .option('--email <address>', 'email address')
    .option('--password-stdin', 'read the password from standard input (default: an account without a password)')
    .option('--admin', 'make the person an administrator')
    .action(create);
  add('invite', 'Create an account, and a link with which its person chooses a password within 7 days')
    .requiredOption('--login <login>', 'login, which is also in paths')
    .requiredOption('--name <name>', 'name of the person on pages')
    .option('--email <address>', 'email address')
    .option('--mail', 'mail the link instead of printing it')
    .action(invitePerson);
  add('password-link <login>', 'Create a link with which a person chooses a new password within 24 hours')
    .option('--mail', 'mail the link to the verified address of the person instead of printing it')
    .action(createPasswordLink);
  addAnswerOptions(command.command('list').description('List all people'), 'one JSON object a line')
    .option('--search <text>', 'only people whose login, name or email address contains this')
    .addOption(new Option('--state <state>', 'only these').choices(PERSON_STATES))
    .action(list);
  add('show <login>', 'Show a person').action(show);
  add('disable <login>', 'Disable an account: end its sessions, and stop its tokens until it is enabled').action(
    disablePerson,
  );
  add('enable <login>', 'Enable a disabled account').action(enablePerson);
  add('email <login> <address>', 'Set the email address of a person as verified, so that applications see it').action(
    setEmail,
  );
  add(
    'password <login>',
    'Set a new password, read from standard input, and end the sessions and the access of applications',
  )
    .requiredOption('--password-stdin', 'read the password from standard input')
    .option('--delete-tokens', 'delete the personal access tokens too')
    .action(resetPassword);
  add(
    'reset-second-step <login>',
    'Turn off the authenticator app of a person who lost it, and end the sessions and the access of applications',
  ).action(resetSecondStep);
  add('admin <login>', 'Give a person the administrator role, or take it away')
    .option('--revoke', 'take the role away')
    .action(setAdmin);
  return command;
}

interface CreateOptions extends AnswerOptions {
  readonly login: string;
  readonly name: string;
  readonly email?: string;
  readonly passwordStdin?: true;
  readonly admin?: true;
}

async function create(options: CreateOptions): Promise<void> {
  const { login, name, email, passwordStdin, admin, json } = options;
  const password = passwordStdin ? await readPassword(login) : null;
  await using operator = await openAdministration(options, { ifAbsent: 'create' });
  const given = { login, name, email: email ?? null, isAdmin: admin === true, password };
  const person = await operator.call(addPerson, given);
  if (json) printJson(person);
  else print(`Created ${person.login} (${person.id})`);
  if (!json && password === null)
    remark(
      `${person.login} cannot sign in yet: trivet user password-link ${person.login} makes a link to choose a password`,
    );
}

interface LinkOptions extends AnswerOptions {
  readonly mail?: true;
}

interface InviteOptions extends LinkOptions, Pick<CreateOptions, 'login' | 'name' | 'email'> {}

async function invitePerson(options: InviteOptions): Promise<void> {
  const { login, name, email = null, mail } = options;
  await using operator = await openAdministration(options, { ifAbsent: 'create' });
  printLink(options, await operator.call(invite, { login, name, email, sendMail: mail === true }));
}

async function createPasswordLink(login: string, options: LinkOptions): Promise<void> {
  await using operator = await openAdministration(options);
  printLink(options, await operator.call(orderLink, { login, sendMail: options.mail === true }));
}

function printLink({ json }: LinkOptions, answer: OutputOf<typeof invite>): void {
  const { login, link, expiresAtMs } = answer;
  const until = new Date(expiresAtMs).toISOString();
  if (json) printJson(answer);
  else print(link === null ? `The link is on its way to ${login} by mail, good until ${until}` : link);
  if (!json && link !== null) remark(`Good for one new password, until ${until}: hand it to ${login} in private`);
}

/** Reads and checks the password, before the store is opened or a request is sent. */
async function readPassword(login: string): Promise<string> {
  const password = (await text(process.stdin)).replace(/\r?\n$/, '');
  checkNewPassword(password, { login });
  return password;
}

interface ListOptions extends AnswerOptions, Pick<InputOf<typeof listPeople>, 'state'> {
  readonly search?: string;
}

async function list(options: ListOptions): Promise<void> {
  await using operator = await openAdministration(options);
  const people: Person[] = [];
  for (let after: string | null = ''; after !== null; ) {
    const page: { people: Person[]; next: string | null } = await operator.call(listPeople, {
      state: options.state,
      q: options.search,
      after,
      limit: 200,
    });
    people.push(...page.people);
    after = page.next;
  }
  if (options.json) {
    for (const person of people) printJson(person);
    return;
  }
  if (people.length === 0) remark('No person');
  else print(formatPeople(people));
}

function formatPeople(people: readonly Person[]): string {
  const rows = people.map((person) => [person.login, person.name, person.email, describeState(person), person.id]);
  return formatTable(['login', 'name', 'email', 'state', 'id'], rows);
}

function describeState({ disabledAtMs, isAdmin, isInvited }: Person): string {
  if (disabledAtMs !== null) return 'disabled';
  if (isInvited) return isAdmin ? 'admin, invited' : 'invited';
  return isAdmin ? 'admin' : 'active';
}

async function show(login: string, options: AnswerOptions): Promise<void> {
  await using operator = await openAdministration(options);
  const person = await operator.call(showPerson, { login });
  if (options.json) printJson(person);
  else print(formatPeople([person]));
}

async function disablePerson(login: string, options: AnswerOptions): Promise<void> {
  await using operator = await openAdministration(options);
  await operator.call(disable, { login });
  printChange(login, options, `Disabled ${login}: sessions have ended and tokens stopped working`);
}

async function enablePerson(login: string, options: AnswerOptions): Promise<void> {
  await using operator = await openAdministration(options);
  await operator.call(enable, { login });
  printChange(login, options, `Enabled ${login}`);
}

async function resetPassword(login: string, options: AnswerOptions & { readonly deleteTokens?: true }): Promise<void> {
  const deleteTokens = options.deleteTokens === true;
  const password = await readPassword(login);
  await using operator = await openAdministration(options);
  await operator.call(changePassword, { login, password, deleteTokens });
  const tokens = deleteTokens ? 'and personal access tokens are deleted' : 'personal access tokens stay';
  const done = `Set the password of ${login}: sessions and the access of applications have ended, ${tokens}`;
  printChange(login, options, done);
}

async function setEmail(login: string, email: string, options: AnswerOptions): Promise<void> {
  await using operator = await openAdministration(options);
  await operator.call(changeEmail, { login, email });
  printChange(login, options, `The email address of ${login} is ${email}, verified`);
}

async function resetSecondStep(login: string, options: AnswerOptions): Promise<void> {
  await using operator = await openAdministration(options);
  await operator.call(removeSecondStep, { login });
  printChange(
    login,
    options,
    `${login} signs in without a second step until they set one up again; sessions and the access of applications have ended`,
  );
}

async function setAdmin(login: string, options: AnswerOptions & { readonly revoke?: true }): Promise<void> {
  await using operator = await openAdministration(options);
  const isAdmin = options.revoke !== true;
  const { endedAccess } = await operator.call(changeRole, { login, isAdmin });
  if (options.json) return printJson({ login, endedAccess });
  print(isAdmin ? `${login} administers the service` : `${login} no longer administers the service`);
  if (endedAccess)
    remark(
      `All earlier ways to sign in have ended, because a token with the scope admin:people may have set one: hand over a link from "trivet user password-link ${login}"`,
    );
}

function printChange(login: string, { json }: AnswerOptions, words: string): void {
  if (json) printJson({ login });
  else print(words);
}
