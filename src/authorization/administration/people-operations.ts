/** Implements the operations on people: list, create, disable, enable, reset. */
import { z } from '@hono/zod-openapi';
import { describeOperation, type Implementation, implement } from '../../operations/operation.ts';
import { textPage } from '../../operations/paging.ts';
import {
  createPerson,
  disablePerson,
  enablePerson,
  resetPassword,
  resetSecondStep,
  setAdministrator,
  setEmail,
} from './manage-people.ts';
import { PERSON_STATES, searchPeople } from './people-store.ts';
import { findPersonState, type PeopleDependencies, personSchema, toPerson } from './person.ts';

const about = { tag: 'People', scope: 'admin:people' } as const;
const login = z.string().min(1).max(100);
const ofPerson = z.object({ login });
const done = z.object({ login: z.string() }).openapi('ChangedPerson');

export const listPeople = describeOperation({
  ...about,
  name: 'listPeople',
  method: 'get',
  path: '/people',
  summary: 'List people in the order of their logins',
  input: z.object({
    q: z
      .string()
      .max(100)
      .default('')
      .openapi({ description: 'Text that the login, the name or the email address contains' }),
    state: z.enum(PERSON_STATES).optional(),
    ...textPage,
  }),
  output: z.object({ people: z.array(personSchema), next: z.string().nullable() }).openapi('PeoplePage'),
});
export const showPerson = describeOperation({
  ...about,
  name: 'showPerson',
  method: 'get',
  path: '/people/{login}',
  summary: 'Show a person',
  input: ofPerson,
  output: personSchema,
});
export const addPerson = describeOperation({
  ...about,
  name: 'createPerson',
  method: 'post',
  path: '/people',
  summary: 'Create an account',
  input: z.object({
    login,
    name: z.string().max(200),
    email: z.string().max(320).nullable().default(null).openapi({ description: 'Counts as verified' }),
    isAdmin: z.boolean().default(false).openapi({ description: 'Needs the scope admin' }),
    password: z
      .string()
      .max(1000)
      .nullable()
      .default(null)
      .openapi({ description: 'null: an account without a password' }),
  }),
  output: personSchema,
});
export const disable = describeOperation({
  ...about,
  name: 'disablePerson',
  method: 'post',
  path: '/people/{login}/disable',
  summary: 'Disable an account: end its sessions, and stop its tokens until it is enabled',
  input: ofPerson,
  output: done,
});
export const enable = describeOperation({
  ...about,
  name: 'enablePerson',
  method: 'post',
  path: '/people/{login}/enable',
  summary: 'Enable a disabled account',
  input: ofPerson,
  output: done,
});
export const changePassword = describeOperation({
  ...about,
  name: 'resetPassword',
  method: 'put',
  path: '/people/{login}/password',
  summary: 'Set a new password, and end the sessions and the access of applications',
  input: ofPerson.extend({ password: z.string().max(1000), deleteTokens: z.boolean().default(false) }),
  output: done,
});
export const removeSecondStep = describeOperation({
  ...about,
  name: 'resetSecondStep',
  method: 'delete',
  path: '/people/{login}/second-step',
  summary:
    'Turn off the authenticator app of a person who lost it, and end the sessions and the access of applications',
  input: ofPerson,
  output: done,
});
export const changeEmail = describeOperation({
  ...about,
  name: 'setEmail',
  method: 'put',
  path: '/people/{login}/email',
  summary: 'Set the email address of a person as verified',
  input: ofPerson.extend({ email: z.string().max(320) }),
  output: done,
});
export const changeRole = describeOperation({
  ...about,
  name: 'setAdministrator',
  method: 'put',
  path: '/people/{login}/admin',
  summary: 'Give a person the administrator role, or take it away. Needs the scope admin',
  input: ofPerson.extend({ isAdmin: z.boolean() }),
  output: z
    .object({
      login: z.string(),
      endedAccess: z.boolean().openapi({
        description:
          'True for a new administrator whose ways to sign in, sessions and tokens have ended, because a token with the scope `admin:people` may have set one of them: the person needs a link to choose a password',
      }),
    })
    .openapi('ChangedRole'),
});

export function implementPeople(dependencies: PeopleDependencies): Implementation[] {
  const { store } = dependencies;
  return [
    implement(listPeople, async (input) => {
      const { people, next } = await searchPeople(store, input);
      return { people: people.map(toPerson), next };
    }),
    implement(showPerson, async (input) => toPerson(await findPersonState(store, input.login))),
    implement(addPerson, async (input, { actor }) => {
      const user = await createPerson(dependencies, actor, input);
      return toPerson({ ...user, isInvited: user.passwordChangedAtMs === null });
    }),
    implement(disable, async (input, { actor }) => {
      await disablePerson(dependencies, actor, input.login);
      return { login: input.login };
    }),
    implement(enable, async (input, { actor }) => {
      await enablePerson(dependencies, actor, input.login);
      return { login: input.login };
    }),
    implement(changePassword, async (input, { actor }) => {
      await resetPassword(dependencies, actor, input);
      return { login: input.login };
    }),
    implement(removeSecondStep, async (input, { actor }) => {
      await resetSecondStep(dependencies, actor, input.login);
      return { login: input.login };
    }),
    implement(changeEmail, async (input, { actor }) => {
      await setEmail(dependencies, actor, input);
      return { login: input.login };
    }),
    implement(changeRole, async (input, { actor }) => {
      return { login: input.login, endedAccess: await setAdministrator(dependencies, actor, input) };
    }),
  ];
}
