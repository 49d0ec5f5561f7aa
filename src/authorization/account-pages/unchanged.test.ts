/** Forms of a signed-in person that change nothing, arrive twice at once, or arrive late: what is recorded, and what stays. */
import assert from 'node:assert/strict';
import { TOTP } from 'otpauth';
import { createPerson, type SignedIn, signIn } from '../../../test/support/authorization/authorization-server.ts';
import { type Bench, type Case, checkConformance } from '../../../test/support/authorization/conformance.ts';
import { createFormClient, type FormClient } from '../../../test/support/network/form-client.ts';
import { addWayInOnce, MAX_WAYS_IN } from '../accounts/access-store.ts';
import { auditStatement, listEvents } from '../accounts/audit-store.ts';
import { insertPasskeyStatement, listPasskeys } from '../accounts/passkey-store.ts';
import { countRecoveryCodes, hasTotp, offerTotpSeed } from '../accounts/totp-store.ts';
import { linkUpstreamStatement } from '../accounts/upstream-account-store.ts';

const ISSUER = 'http://127.0.0.1:9';
const SECURITY = '/account/security';
const SEED = 'JBSWY3DPEHPK3PXP';

interface Scene {
  readonly bench: Bench;
  /** A person without a password. */
  readonly person: SignedIn;
  readonly browser: FormClient;
  readonly csrf_token: string;
}

async function prepare(bench: Bench): Promise<Scene> {
  const person = await createPerson(bench.server);
  const browser = await openBrowser(bench, person);
  return { bench, person, browser, csrf_token: await readToken(browser) };
}

async function openBrowser({ server }: Bench, { user }: SignedIn, url = server.url): Promise<FormClient> {
  const [name = '', value = ''] = (await signIn(server, user)).split('=');
  return createFormClient(url, new Map([[name, value]]));
}

async function readToken(browser: FormClient): Promise<string> {
  return /name="csrf_token" value="([^"]+)"/.exec((await browser.get('/account')).body)?.[1] ?? '';
}

function passkeyStatement(userId: string, id: string) {
  const key = { name: 'key', publicKey: Uint8Array.of(1), counter: 0, transports: [], createdAtMs: 1 };
  return insertPasskeyStatement({ ...key, id, userId });
}

/** The kinds of the person's recorded events, oldest first, without the sign-ins of this test. */
async function listKinds({ bench, person }: Scene): Promise<string[]> {
  const events = await listEvents(bench.server.store, { userId: person.user.id, limit: 50 });
  return events
    .map(({ kind }) => kind)
    .filter((kind) => kind !== 'sign_in')
    .reverse();
}

const cases: Case[] = [
  [
    'a profile that is saved as it is is not recorded',
    async (bench) => {
      const scene = await prepare(bench);
      const { browser, person } = scene;
      const save = async (fields: { name: string; email: string }) =>
        assert.equal((await browser.submit('/account', '/account', fields)).location, '/account?done=saved');
      const { name, email } = person.user;
      await save({ name, email: email ?? '' });
      assert.deepEqual(await listKinds(scene), []);
      for (const changed of ['', '', email ?? '']) await save({ name, email: changed });
      assert.deepEqual(await listKinds(scene), ['user_changed', 'user_changed']);
    },
  ],
  [
    'what ends or removes nothing is not recorded, whatever it names',
    async (bench) => {
      const scene = await prepare(bench);
      const { browser, csrf_token } = scene;
      await bench.server.store.writeAll([passkeyStatement(scene.person.user.id, `only ${scene.person.user.id}`)]);
      const nothing: [path: string, fields: Readonly<Record<string, string>>][] = [
        ['/account/sessions/end', { session_id: 'no session' }],
        ['/account/authorizations/revoke', { client_id: '\u202eroot was here' }],
        [`${SECURITY}/passkeys/remove`, { passkey_id: 'no passkey' }],
        [`${SECURITY}/upstream/unlink`, {}],
        [`${SECURITY}/totp/stop`, {}],
        ['/account/sessions/end-others', {}],
      ];
      // The session that was created with the person.
      assert.equal((await browser.post('/account/sessions/end-others', { csrf_token })).status, 303);
      for (const [path, fields] of nothing)
        assert.equal((await browser.post(path, { csrf_token, ...fields })).status, 303, path);
      assert.deepEqual(await listKinds(scene), ['session_ended']);
    },
  ],
  [
    'of two removals at once, each of which would leave the last way in to the other, one is refused',
    async (bench) => {
      const another = await bench.startAnother();
      for (let round = 0; round < 5; round++) {
        const scene = await prepare(bench);
        const { person, browser, csrf_token } = scene;
        const { id: userId } = person.user;
        const link = { issuer: ISSUER, subject: userId, userId, label: 'ada', linkedAtMs: 1 };
        await bench.server.store.writeAll([passkeyStatement(userId, `of ${userId}`), linkUpstreamStatement(link)]);
        const other = await openBrowser(bench, person, another.url);
        const otherToken = await readToken(other);
        const answers = await Promise.all([
          browser.readOutcome(browser.post(`${SECURITY}/passkeys/remove`, { csrf_token, passkey_id: `of ${userId}` })),
          other.readOutcome(other.post(`${SECURITY}/upstream/unlink`, { csrf_token: otherToken })),
        ]);
        const refused = answers.filter(({ body }) => body.includes('your only way to sign in'));
        assert.equal(refused.length, 1);
        assert.equal((await listKinds(scene)).length, 1);
      }
    },
  ],
  [
    'the linked accounts of one provider, which are unlinked together, are not all removed when they are the only way in',
    async (bench) => {
      const { person, browser, csrf_token } = await prepare(bench);
      const { id: userId } = person.user;
      const link = { issuer: ISSUER, userId, label: 'ada', linkedAtMs: 1 };
      const subjects = [`${userId}-1`, `${userId}-2`];
      await bench.server.store.writeAll(subjects.map((subject) => linkUpstreamStatement({ ...link, subject })));
      const answer = await browser.readOutcome(browser.post(`${SECURITY}/upstream/unlink`, { csrf_token }));
      assert.match(answer.body, /your only way to sign in/);
    },
  ],
  [
    'a person has a bounded number of passkeys and linked accounts, and one more is refused before its ceremony',
    async (bench) => {
      const { person, browser, csrf_token } = await prepare(bench);
      const { id: userId, credentialGeneration } = person.user;
      const keys = Array.from({ length: MAX_WAYS_IN }, (_, index) => passkeyStatement(userId, `${userId} ${index}`));
      await bench.server.store.writeAll(keys);
      const options = await browser.post(`${SECURITY}/passkeys/options`, { csrf_token });
      assert.equal((await browser.readRefusal(options)).status, 409);
      const insert = passkeyStatement(userId, `${userId} too many`);
      const audit = auditStatement({ kind: 'passkey_added', userId }, 1);
      const way = { userId, credentialGeneration, insert, audit };
      assert.equal(await bench.server.store.call(addWayInOnce, way), 'full');
      assert.equal((await listPasskeys(bench.server.store, userId)).length, MAX_WAYS_IN);
    },
  ],
  [
    'digits of an authenticator app that come twice at once turn it on once, and the codes that are shown are right',
    async (bench) => {
      const scene = await prepare(bench);
      const { person, browser, csrf_token } = scene;
      const { store, cipher, world } = bench.server;
      await offerTotpSeed(store, cipher, { userId: person.user.id, seed: SEED });
      const code = new TOTP({ secret: SEED }).generate({ timestamp: world.nowMs() });
      const confirm = () => browser.post(`${SECURITY}/totp/confirm`, { csrf_token, code });
      const answers = await Promise.all([confirm(), confirm(), confirm()]);
      const shown = answers.filter(({ location }) => location?.includes('once='));
      assert.equal(shown.length, 1);
      assert.deepEqual(await listKinds(scene), ['totp_enabled']);
      assert.equal(await countRecoveryCodes(store, person.user.id), 10);
      const { body } = await browser.get(shown[0]?.location ?? '');
      assert.equal(body.match(/[0-9a-z]{4}(?:-[0-9a-z]{4}){3}/g)?.length, 10);
    },
  ],
  [
    'an authenticator app that was begun long ago is not shown or turned on without a new sign-in',
    async (bench) => {
      const { person, browser, csrf_token } = await prepare(bench);
      const { store, cipher, world } = bench.server;
      await offerTotpSeed(store, cipher, { userId: person.user.id, seed: SEED });
      bench.server.advance(31 * 60_000);
      const code = new TOTP({ secret: SEED }).generate({ timestamp: world.nowMs() });
      const page = await browser.get(`${SECURITY}/totp`);
      assert.match(page.location ?? '', /^\/sign-in\?return_to=/);
      assert.doesNotMatch(page.body, new RegExp(SEED));
      const late = await browser.post(`${SECURITY}/totp/confirm`, { csrf_token, code });
      assert.match(late.location ?? '', /^\/sign-in\?return_to=/);
      assert.equal(await hasTotp(store, person.user.id), false);
    },
  ],
];

const environment = { UPSTREAM_ISSUER: ISSUER, UPSTREAM_CLIENT_ID: 'trivet' };
checkConformance('forms that change nothing, come twice or late', cases, { environment });
