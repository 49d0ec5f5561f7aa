/** Conformance of the token endpoint (RFC 6749 §3.2, §4.1.3, §5). Titles begin with the id of the case. */
import assert from 'node:assert/strict';
import {
  callApi,
  createPerson,
  obtainCode,
  registerApplication,
  request,
  startAuthorizationServer,
} from '../../test/support/authorization-server.ts';
import { forEachEngine } from '../../test/support/engines.ts';

forEachEngine(
  'T01 an exchange with its parameters in the query and the secret in the form answers the token object (contract)',
  async (store) => {
    await using server = await startAuthorizationServer(store);
    const person = await createPerson(server);
    const { clientId, clientSecret } = await registerApplication(server);
    const code = await obtainCode(server, person, { client_id: clientId, scope: 'all_user' });
    const query = new URLSearchParams({ grant_type: 'authorization_code', code, client_id: clientId });
    const answer = await request(`${server.url}/oauth/token?${query.toString()}`, {
      method: 'POST',
      body: new URLSearchParams({ client_secret: clientSecret }),
    });
    assert.equal(answer.status, 200, answer.text);
    assert.equal(await callApi(server, String(answer.json.access_token)), 200);
  },
);
