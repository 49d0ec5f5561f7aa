/** A password of the account pages that the full hash queue refuses does not count as a guess. */
import assert from 'node:assert/strict';
import {
  createPerson,
  signIn,
  startAuthorizationServer,
} from '../../../test/support/authorization/authorization-server.ts';
import { createFormClient } from '../../../test/support/network/form-client.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { type Store, statement } from '../../database/store.ts';
import { reserveAttempt } from '../accounts/attempt-store.ts';
import { setPasswordStatement } from '../accounts/password-store.ts';
import { findUserById } from '../accounts/user-store.ts';
import { hashPassword, isPassword } from '../sign-in/password.ts';

const SECURITY = '/account/security';
/** More passwords than can run and wait together. */
const CALLERS = 80;

const countGuessesSql = statement<{ total: number }>(
  'test-count-guesses',
  'SELECT COUNT(*) AS total FROM sign_in_attempts WHERE debt_ms > 0',
);

/** Wraps the store to report when an attempt was counted, and after each operation that follows. */
function watchAttempts(store: Store, onCounted: () => void): Store {
  let isCounted = false;
  const call: Store['call'] = async (procedure, input) => {
    const result = await store.call(procedure, input);
    isCounted ||= procedure.name === reserveAttempt.name;
    if (isCounted) onCounted();
    return result;
  };
  const read: Store['read'] = async (...parameters) => {
    const rows = await store.read(...parameters);
    if (isCounted) onCounted();
    return rows;
  };
  return { ...store, call, read };
}

forEachEngine('a password that loses its place in the queue after it was counted is not counted', async (store) => {
  const floods: Promise<unknown>[] = [];
  let isBusy = true;
  const fillQueue = () => {
    if (!isBusy) return;
    for (let caller = 0; caller < CALLERS; caller += 1)
      floods.push(isPassword(null, 'wrong', { key: `caller ${caller}`, isKnown: true }).catch(() => {}));
  };
  await using server = await startAuthorizationServer(watchAttempts(store, fillQueue));
  const { user } = await createPerson(server);
  await store.writeAll([setPasswordStatement(user.id, await hashPassword('correct horse battery'), 1)]);
  const countGuesses = async () => (await store.read(countGuessesSql))[0]?.total;
  const [name = '', value = ''] = (await signIn(server, (await findUserById(store, user.id))!)).split('=');
  const client = createFormClient(server.url, new Map([[name, value]]));
  const change = (current: string) =>
    client.submit(SECURITY, `${SECURITY}/password`, { current, password: 'staple battery horse' });
  const refused = await client.readRefusal(change('correct horse battery'));
  assert.equal(refused.status, 503);
  assert.equal(await countGuesses(), 0);
  isBusy = false;
  await Promise.all(floods);
  assert.equal((await client.readRefusal(change('wrong'))).status, 422);
  assert.equal(await countGuesses(), 1);
});
