/** Checks for `trivet doctor` that only administrators own the repository of NOTICE_REPOSITORY. */
import { findOrganizationByLogin, listMembers } from '../../authorization/accounts/organization-store.ts';
import { findUserById, findUserByLogin, type User } from '../../authorization/accounts/user-store.ts';
import { listRecipients } from '../../authorization/administration/recipients-store.ts';
import type { InspectedStore } from '../../database/startup/inspect-store.ts';
import { findRepositoryByPath } from '../../webhooks/repositories/repository-store.ts';
import { type Check, ok, warn } from './check.ts';

const NAME = 'notices';

type Reader = Pick<InspectedStore, 'read' | 'readCached'>;

interface NoticeWays {
  /** OWNER/NAME, or undefined when it is not set. */
  readonly fullName: string | undefined;
  readonly hasMail: boolean;
}

export async function checkNotices(store: Reader, { fullName, hasMail }: NoticeWays): Promise<Check> {
  if (hasMail && (await listRecipients(store, { kind: 'administrators' })).length === 0)
    return warn(
      NAME,
      'are mailed to no administrator: none has a verified email address and wants them',
      'Verify one on the page of the person, or by trivet user email LOGIN ADDRESS',
    );
  if (fullName === undefined)
    return ok(
      NAME,
      hasMail
        ? 'go by mail only: NOTICE_REPOSITORY is not set'
        : 'are off: SMTP_HOST and NOTICE_REPOSITORY are not set',
    );
  return checkNoticeRepository(store, fullName);
}

async function checkNoticeRepository(store: Reader, fullName: string): Promise<Check> {
  const [login = '', path = ''] = fullName.split('/');
  const owner = await findOwner(store, login);
  const repository = owner && (await findRepositoryByPath(store, owner.id, path));
  if (owner === undefined || repository === undefined) {
    const advice = `Create it, before another account takes the name: trivet repo create ${fullName} --private`;
    return warn(NAME, `NOTICE_REPOSITORY is "${fullName}", which does not exist: no notice is published`, advice);
  }
  const isOfAdministrators = owner.people.length > 0 && owner.people.every(isAdministrator);
  if (isOfAdministrators) return ok(NAME, `are published to "${fullName}"`);
  const found = `NOTICE_REPOSITORY is "${fullName}", and not all its owners are administrators: each owner gets the notices of all webhooks`;
  return warn(
    NAME,
    found,
    'Name a repository of an administrator, or of an organization that administrators alone own',
  );
}

interface RepositoryOwner {
  readonly id: string;
  /** Returns the person, or the owners of the organization. */
  readonly people: readonly (User | undefined)[];
}

async function findOwner(store: Reader, login: string): Promise<RepositoryOwner | undefined> {
  const user = await findUserByLogin(store, login);
  if (user !== undefined) return { id: user.id, people: [user] };
  const organization = await findOrganizationByLogin(store, login);
  if (organization === undefined) return undefined;
  const owners = (await listMembers(store, organization.id)).filter(({ role }) => role === 'owner');
  return { id: organization.id, people: await Promise.all(owners.map(({ userId }) => findUserById(store, userId))) };
}

function isAdministrator(user: User | undefined): boolean {
  return user?.isAdmin === true && user.disabledAtMs === null;
}
