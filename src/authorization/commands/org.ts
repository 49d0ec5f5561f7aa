/** `trivet org`: organizations, which own repositories that several people administer. */
import { Command, Option } from 'commander';
import { type CliStore, openCliStore } from '../../command-line/open-cli-store.ts';
import { formatTable, print } from '../../command-line/output.ts';
import { Failure } from '../../errors.ts';
import {
  createOrganization,
  findOrganizationByLogin,
  listMembers,
  listOrganizations,
  type MemberRole,
  type Organization,
  removeMember,
  setMember,
} from '../accounts/organization-store.ts';
import { findUserByLogin, type User } from '../accounts/user-store.ts';

export function createOrgCommand(): Command {
  const command = new Command('org').description('Create organizations and change their members');
  command
    .command('create <login>')
    .description('Create an organization')
    .requiredOption('--owner <login>', 'who administers it')
    .option('--name <name>', 'how pages call it; its login unless given')
    .action(create);
  command.command('list').description('List organizations').action(list);
  command.command('members <organization>').description('List the members').action(members);
  command
    .command('add <organization> <login>')
    .description('Add a member, or change their role')
    .addOption(new Option('--role <role>', 'what they may do').choices(['owner', 'member']).default('member'))
    .action(add);
  command.command('remove <organization> <login>').description('Remove a member').action(remove);
  return command;
}

async function create(
  login: string,
  { owner, name }: { readonly owner: string; readonly name?: string },
): Promise<void> {
  await using cli = await openCliStore();
  const { id: ownerId } = await findUser(cli, owner);
  const organization = await createOrganization(cli.store, cli.world, { login, name: name ?? login, ownerId });
  print(`Created ${organization.login} (${organization.id})`);
}

const MOST_LISTED = 10_000;

async function list(): Promise<void> {
  await using cli = await openCliStore();
  const organizations = await listOrganizations(cli.store, MOST_LISTED);
  print(
    formatTable(
      ['login', 'name', 'id'],
      organizations.map(({ login, name, id }) => [login, name, id]),
    ),
  );
}

async function members(organization: string): Promise<void> {
  await using cli = await openCliStore();
  const { id } = await findOrganization(cli, organization);
  const rows = (await listMembers(cli.store, id)).map(({ login, name, role }) => [login, name, role]);
  print(formatTable(['login', 'name', 'role'], rows));
}

async function add(organization: string, login: string, { role }: { readonly role: MemberRole }): Promise<void> {
  await using cli = await openCliStore();
  const { id: organizationId } = await findOrganization(cli, organization);
  const { id: userId } = await findUser(cli, login);
  await setMember(cli.store, { organizationId, userId, nowMs: cli.world.nowMs() }, role);
  print(`${login} is ${role} of ${organization}`);
}

async function remove(organization: string, login: string): Promise<void> {
  await using cli = await openCliStore();
  const { id: organizationId } = await findOrganization(cli, organization);
  const { id: userId } = await findUser(cli, login);
  await removeMember(cli.store, { organizationId, userId, nowMs: cli.world.nowMs() });
  print(`${login} left ${organization}`);
}

async function findUser({ store }: CliStore, login: string): Promise<User> {
  const user = await findUserByLogin(store, login);
  if (user === undefined) throw new Failure('not_found', `There is no person with the login "${login}"`);
  return user;
}

async function findOrganization({ store }: CliStore, login: string): Promise<Organization> {
  const organization = await findOrganizationByLogin(store, login);
  if (organization === undefined) throw new Failure('not_found', `No organization has the login "${login}"`);
  return organization;
}
