import assert from 'node:assert/strict';
import { createStillWorld } from '../../../test/support/basics/still-world.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { hasCode } from '../../../test/support/store/note-store.ts';
import { createUser } from '../accounts/user-store.ts';
import { createApplication, deleteApplication, updateApplication } from './application.ts';
import type { ApplicationChange } from './application-form.ts';
import { listApplications, MAX_APPLICATIONS, updateApplicationStatement } from './application-store.ts';

const AT_ONCE = 8;
const form = {
  name: 'Dashboard',
  homepage: '',
  description: '',
  redirectUris: ['https://client.example/callback'],
  isPublic: true,
};

forEachEngine('a person has 100 applications, also when many are made at once', async (store) => {
  const world = createStillWorld();
  const profile = { login: 'grace', name: 'Grace', email: null, isAdmin: false, passwordHash: null };
  const { id: userId } = await createUser(store, world, profile);
  const create = () => createApplication(store, world, { form, actor: { userId } });
  for (let count = 0; count < MAX_APPLICATIONS - 1; count += 1) await create();
  const outcomes = await Promise.allSettled(Array.from({ length: AT_ONCE }, create));
  const refused = outcomes.filter((outcome) => outcome.status === 'rejected');
  assert.equal(refused.length, AT_ONCE - 1);
  for (const { reason } of refused) {
    assert.ok(hasCode('conflict')(reason));
    assert.match(reason.message, /at most 100 of them; delete one first/);
  }
  const [application, ...others] = await listApplications(store, userId);
  assert.equal(others.length, MAX_APPLICATIONS - 1);
  await deleteApplication(store, world, { application: application!, actor: { userId } });
  await create();
  await assert.rejects(create(), hasCode('conflict'));
  // Applications of the service itself are not limited.
  await createApplication(store, world, { form, actor: { userId }, owner: { id: undefined } });
});

forEachEngine(
  'an application cannot have a name that looks like another, or a description with hidden text',
  async (store) => {
    const world = createStillWorld();
    const create = (fields: Partial<typeof form>) =>
      createApplication(store, world, { form: { ...form, ...fields }, actor: { userId: undefined } });
    for (const hidden of ['\u200b', '\u202e', '\u00ad', '\u{e0061}', '\u3164', '\u0007', '\ud800']) {
      await assert.rejects(create({ name: `Git${hidden}Hub` }), hasCode('invalid'));
      await assert.rejects(create({ description: `Reads ${hidden} nothing` }), hasCode('invalid'));
    }
    await assert.rejects(create({ name: '\u200b' }), hasCode('invalid'));
    await create({ name: 'تطبیق‌ها 👩‍💻', description: 'One line,\nand another' });
  },
);

forEachEngine('an application with a hidden character from before is changed all the same', async (store) => {
  const world = createStillWorld();
  const actor = { userId: undefined };
  const { application } = await createApplication(store, world, { form, actor });
  const text = 'Dash\u00adboard';
  const stored = { ...application, name: text, description: text };
  await store.writeAll([updateApplicationStatement(stored)]);
  const change = (fields: ApplicationChange) =>
    updateApplication(store, world, { application: stored, change: fields, actor });
  const { homepage } = await change({ name: text, description: text, homepage: 'https://client.example/' });
  assert.equal(homepage, 'https://client.example/');
  await assert.rejects(change({ name: `${text}s` }), hasCode('invalid'));
  await assert.rejects(change({ description: `${text}s` }), hasCode('invalid'));
});
