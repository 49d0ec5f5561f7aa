import assert from 'node:assert/strict';
import { createStillWorld } from '../../../test/support/basics/still-world.ts';
import { addUser } from '../../../test/support/pages/page-service.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { type AuditEvent, auditStatement } from '../accounts/audit-store.ts';
import { findEvents } from './audit-operations.ts';

const world = createStillWorld();

forEachEngine('a search for what a person did leaves out what others did to the account', async (store) => {
  const { id: userId } = await addUser({ store, world }, 'ada');
  const { id: actorId } = await addUser({ store, world }, 'root');
  const events: [event: Omit<AuditEvent, 'userId'>, isByAda: boolean][] = [
    [{ kind: 'sign_in' }, true],
    [{ kind: 'password_changed' }, true],
    [{ kind: 'sign_in_failed' }, false],
    [{ kind: 'password_forgotten' }, false],
    [{ kind: 'client_authentication_failed' }, false],
    [{ kind: 'secret_in_query' }, false],
    [{ kind: 'code_replayed' }, false],
    [{ kind: 'refresh_reused' }, false],
    [{ kind: 'user_disabled', actorId }, false],
  ];
  await store.writeAll(events.map(([event], index) => auditStatement({ ...event, userId }, world.nowMs() + index)));
  const search = async (by: string) => (await findEvents(store, { by, limit: 50 })).found.map(({ kind }) => kind);
  assert.deepEqual(
    (await search('ada')).reverse(),
    events.filter(([, isByAda]) => isByAda).map(([{ kind }]) => kind),
  );
  assert.deepEqual(await search('root'), ['user_disabled']);
});
