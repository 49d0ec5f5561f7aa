/** The audit log names the application that changes another application for its person. */
import assert from 'node:assert/strict';
import { createStillWorld } from '../../../test/support/basics/still-world.ts';
import { addUser } from '../../../test/support/pages/page-service.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import type { Actor, AnyOperation } from '../../operations/operation.ts';
import { listEvents } from '../accounts/audit-store.ts';
import {
  addApplication,
  addApplicationSecret,
  disableApplication,
  enableApplication,
  implementApplications,
  removeApplication,
  removeApplicationSecret,
} from './application-operations.ts';

const FORM = { name: 'Board', redirectUris: ['https://board.example/cb'] };

forEachEngine('every change of an application names the application that made it', async (store) => {
  const world = createStillWorld();
  const root = await addUser({ store, world }, 'root', true);
  const holder: Actor = { userId: root.id, login: 'root', isAdmin: true, clientId: 'app_holder' };
  const implementations = implementApplications({ store, world });
  const call = (operation: AnyOperation, input: object, actor = holder) =>
    implementations
      .find((each) => each.operation === operation)!
      .handle(operation.input.parse(input), { actor, file: new Uint8Array() });

  const { clientId } = await call(addApplication, FORM);
  await call(addApplicationSecret, { clientId });
  await call(removeApplicationSecret, { clientId, slot: 1 });
  for (const operation of [disableApplication, enableApplication, removeApplication])
    await call(operation, { clientId });
  const events = await listEvents(store, { limit: 20 });
  assert.equal(events.length, 7, 'the first secret too');
  for (const { kind, clientId: changed, actorId, details } of events)
    assert.deepEqual([changed, actorId, details?.by_client], [clientId, root.id, 'app_holder'], kind);

  const { clientId: byHand } = await call(addApplication, FORM, { ...holder, clientId: undefined });
  const ofHand = (await listEvents(store, { limit: 20 })).filter((event) => event.clientId === byHand);
  for (const { kind, details } of ofHand) assert.equal('by_client' in (details ?? {}), false, kind);
});
