/** Recovery codes that are renewed in two browsers at once. */
import assert from 'node:assert/strict';
import { createPerson, signIn } from '../../../test/support/authorization/authorization-server.ts';
import { checkConformance } from '../../../test/support/authorization/conformance.ts';
import { giveSecondStep } from '../../../test/support/authorization/second-step.ts';
import { createFormClient } from '../../../test/support/network/form-client.ts';
import { listEvents } from '../accounts/audit-store.ts';
import { countRecoveryCodes, stopTotpStatement } from '../accounts/totp-store.ts';

const ROUNDS = 5;
const BROWSERS = 6;
const PATH = '/account/security/recovery-codes';

checkConformance('recovery codes', [
  [
    'that are renewed several times at once are those of one renewal',
    async ({ server, startAnother }) => {
      const another = await startAnother();
      for (let round = 0; round < ROUNDS; round++) {
        const { user } = await createPerson(server);
        await giveSecondStep(server.store, user.login);
        const browsers = [];
        for (let count = 0; count < BROWSERS; count++) {
          const [name = '', value = ''] = (await signIn(server, user)).split('=');
          const client = createFormClient(count % 2 === 0 ? server.url : another.url, new Map([[name, value]]));
          const { body } = await client.get('/account/security');
          browsers.push({ client, csrf_token: /name="csrf_token" value="([^"]+)"/.exec(body)?.[1] ?? '' });
        }
        const answers = await Promise.all(browsers.map(({ client, csrf_token }) => client.post(PATH, { csrf_token })));
        for (const { location } of answers) assert.match(location ?? '', /^\/account\/security\/recovery-codes\?once=/);
        assert.equal(await countRecoveryCodes(server.store, user.id), 10);
      }
    },
  ],
  [
    'are not renewed once the app is off',
    async ({ server }) => {
      const { user, cookie } = await createPerson(server);
      await giveSecondStep(server.store, user.login);
      const [name = '', value = ''] = cookie.split('=');
      const client = createFormClient(server.url, new Map([[name, value]]));
      const { body } = await client.get('/account/security');
      await server.store.writeAll([stopTotpStatement(user.id)]);
      const csrf_token = /name="csrf_token" value="([^"]+)"/.exec(body)?.[1] ?? '';
      const refused = await client.readRefusal(client.post(PATH, { csrf_token }));
      assert.equal(refused.status, 409);
      assert.equal(await countRecoveryCodes(server.store, user.id), 0);
      const kinds = (await listEvents(server.store, { userId: user.id, limit: 9 })).map(({ kind }) => kind);
      assert.ok(!kinds.includes('recovery_codes_renewed'));
    },
  ],
]);
