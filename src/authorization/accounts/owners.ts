/** Finds for other areas which person or organization has a login, and who may act for an organization. */
import type { Store } from '../../database/store.ts';
import type { Owner, Owners } from '../../identity.ts';
import { findMemberRole, findOrganizationByLogin, listOrganizationsOfUser } from './organization-store.ts';
import { findUserByLogin } from './user-store.ts';

/** Reads each answer from the store, so that a change counts at once. */
export function createOwners(store: Store): Owners {
  return {
    async findOwner(login): Promise<Owner | undefined> {
      const user = await findUserByLogin(store, login);
      if (user !== undefined) return { kind: 'user', id: user.id, login: user.login, name: user.name };
      const organization = await findOrganizationByLogin(store, login);
      return (
        organization && {
          kind: 'organization',
          id: organization.id,
          login: organization.login,
          name: organization.name,
        }
      );
    },
    async canAdminister(identity, owner) {
      if (identity.isAdmin || owner.id === identity.userId) return true;
      if (owner.kind === 'user') return false;
      return (await findMemberRole(store, owner.id, identity.userId)) === 'owner';
    },
    async listAdministered({ userId, login }) {
      const user = await findUserByLogin(store, login);
      const self = { kind: 'user' as const, id: userId, login, name: user?.name ?? login };
      const owned = (await listOrganizationsOfUser(store, userId)).filter(({ role }) => role === 'owner');
      return [self, ...owned.map(({ id, login, name }) => ({ kind: 'organization' as const, id, login, name }))];
    },
  };
}
