/** A new password, and requests of other sessions of the same person that begin before it and commit after it. */
import assert from 'node:assert/strict';
import { createPerson, type SignedIn, signIn } from '../../../test/support/authorization/authorization-server.ts';
import { type Bench, checkConformance } from '../../../test/support/authorization/conformance.ts';
import { createFormClient, type FormClient } from '../../../test/support/network/form-client.ts';
import { listPersonalTokens } from '../tokens/personal-token-store.ts';

const ROUNDS = 3;
const PARALLEL = 8;

interface Race {
  readonly person: SignedIn;
  /** Two browsers of the person, each connected to another process. */
  readonly browsers: readonly [FormClient, FormClient];
}

async function prepareRace({ server, startAnother }: Bench): Promise<Race> {
  const person = await createPerson(server);
  const another = await startAnother();
  const openBrowser = async (url: string) => {
    const [name = '', value = ''] = (await signIn(server, person.user)).split('=');
    return createFormClient(url, new Map([[name, value]]));
  };
  return { person, browsers: [await openBrowser(server.url), await openBrowser(another.url)] };
}

async function readToken(browser: FormClient): Promise<string> {
  const { body } = await browser.get('/account/tokens');
  return /name="csrf_token" value="([^"]+)"/.exec(body)?.[1] ?? '';
}

async function setPassword(browser: FormClient, csrf_token: string) {
  const fields = { csrf_token, password: 'a new long password', revoke: 'on' };
  return browser.post('/account/security/password', fields);
}

checkConformance('a new password', [
  [
    'deletes the personal tokens that other sessions are making',
    async (bench) => {
      for (let round = 0; round < ROUNDS; round++) {
        const { person, browsers } = await prepareRace(bench);
        const [owner, intruder] = browsers;
        const [ownerForm, intruderForm] = [await readToken(owner), await readToken(intruder)];
        const token = { csrf_token: intruderForm, name: 'kept', days: '30', scope: 'all_user' };
        let made = 0;
        let isIn = true;
        const makeTokens = async () => {
          while (isIn) {
            const { location } = await intruder.post('/account/tokens', token);
            isIn = location?.includes('once=') ?? false;
            if (isIn) made += 1;
          }
        };
        const makers = Array.from({ length: PARALLEL }, makeTokens);
        while (made < PARALLEL) await new Promise(setImmediate);
        assert.equal((await setPassword(owner, ownerForm)).location, '/account/security?done=changed');
        await Promise.all(makers);
        const list = await listPersonalTokens(bench.server.store, person.user.id);
        assert.deepEqual(list, []);
      }
    },
  ],
  [
    'that two sessions set at once is that of one of them',
    async (bench) => {
      for (let round = 0; round < ROUNDS; round++) {
        const { browsers } = await prepareRace(bench);
        const forms = await Promise.all(browsers.map(readToken));
        const answers = await Promise.all(browsers.map((browser, at) => setPassword(browser, forms[at] ?? '')));
        const changed = answers.filter(({ location }) => location === '/account/security?done=changed');
        assert.equal(changed.length, 1);
      }
    },
  ],
]);
