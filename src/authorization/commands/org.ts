/** Runs `trivet org`: organizations and their members. */
import { Command, Option } from 'commander';
import { print, printJson, printTable } from '../../command-line/output.ts';
import type { OutputOf } from '../../operations/operation.ts';
import {
  addMember,
  addOrganization,
  dropMember,
  listAllOrganizations,
  listOrganizationMembers,
} from '../administration/organization-operations.ts';
import { type AnswerOptions, addAnswerOptions, openAdministration } from './open-administration.ts';

export function createOrgCommand(): Command {
  const command = new Command('org').description('Create organizations and change their members');
  const add = (words: string, description: string, json?: string) =>
    addAnswerOptions(command.command(words).description(description), json);
  add('create <login>', 'Create an organization')
    .requiredOption('--owner <login>', 'the person who becomes its owner')
    .option('--name <name>', 'its name on pages (default: its login)')
    .action(create);
  add('list', 'List organizations', 'one JSON object a line').action(list);
  add('members <organization>', 'List the members', 'one JSON object a line').action(members);
  add('add <organization> <login>', 'Add a member, or change their role')
    .addOption(new Option('--role <role>', 'role of the member').choices(['owner', 'member']).default('member'))
    .action(addPerson);
  add('remove <organization> <login>', 'Remove a member').action(remove);
  return command;
}

interface CreateOptions extends AnswerOptions {
  readonly owner: string;
  readonly name?: string;
}

async function create(login: string, options: CreateOptions): Promise<void> {
  await using operator = await openAdministration(options);
  const { owner, name } = options;
  const organization = await operator.call(addOrganization, { login, owner, name });
  if (options.json) printJson(organization);
  else print(`Created ${organization.login} (${organization.id})`);
}

type Page = OutputOf<typeof listAllOrganizations>;

async function list(options: AnswerOptions): Promise<void> {
  await using operator = await openAdministration(options);
  const organizations: Page['organizations'] = [];
  for (let after: string | null = ''; after !== null; ) {
    const page: Page = await operator.call(listAllOrganizations, { after, limit: 200 });
    organizations.push(...page.organizations);
    after = page.next;
  }
  if (options.json) {
    for (const organization of organizations) printJson(organization);
    return;
  }
  const rows = organizations.map(({ login, name, id }) => [login, name, id]);
  printTable(['login', 'name', 'id'], rows, 'No organization');
}

async function members(organization: string, options: AnswerOptions): Promise<void> {
  await using operator = await openAdministration(options);
  const { members: found } = await operator.call(listOrganizationMembers, { organization });
  if (options.json) {
    for (const member of found) printJson(member);
    return;
  }
  const rows = found.map(({ login, name, role }) => [login, name, role]);
  printTable(['login', 'name', 'role'], rows, 'No member');
}

interface AddOptions extends AnswerOptions {
  readonly role: 'owner' | 'member';
}

async function addPerson(organization: string, login: string, options: AddOptions): Promise<void> {
  await using operator = await openAdministration(options);
  const membership = await operator.call(addMember, { organization, login, role: options.role });
  if (options.json) printJson(membership);
  else print(`${login} is ${membership.role} of ${organization}`);
}

async function remove(organization: string, login: string, options: AnswerOptions): Promise<void> {
  await using operator = await openAdministration(options);
  const former = await operator.call(dropMember, { organization, login });
  if (options.json) printJson(former);
  else print(`${login} left ${organization}`);
}
