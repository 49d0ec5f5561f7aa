/** A sign-in that an authorization request asks for, and for how long it counts: OpenID Connect Core §3.1.2.1. */
import assert from 'node:assert/strict';
import { prepareRequest, readAgainCookie } from '../../../test/support/authorization/authorization-requests.ts';
import {
  authorize,
  createPerson,
  type Fields,
  obtainCode,
  request,
  signIn,
} from '../../../test/support/authorization/authorization-server.ts';
import { type Case, checkConformance } from '../../../test/support/authorization/conformance.ts';
import { createFormClient } from '../../../test/support/network/form-client.ts';
import { createSession } from '../accounts/session-store.ts';

function toPath(fields: Fields): string {
  return `/oauth/authorize?${new URLSearchParams(fields).toString()}`;
}

/** Where the sign-in page leads back to. */
function readReturnTo({ location }: { readonly location: string | null }): string {
  return new URL(location ?? '', 'http://none.invalid').searchParams.get('return_to') ?? '';
}

const cases: Case[] = [
  [
    'A23 prompt=login and max_age ask for a fresh sign-in once, and the consent page can be reloaded until it is answered',
    async (bench) => {
      const { server } = bench;
      const { cookie, fields, person } = await prepareRequest(bench);
      const browser = createFormClient(server.url);
      const use = (session: string) => browser.jar.set('trivet_session', session.split('=')[1] ?? '');
      use(cookie);
      server.advance(10_000);
      for (const extra of [{ prompt: 'login' }, { max_age: '5' }, { max_age: '0' }]) {
        const returnTo = readReturnTo(await browser.get(toPath({ ...fields, ...extra })));
        assert.equal((await browser.get(returnTo)).status, 303, 'the old session does not do');
        use(await signIn(server, person.user));
        server.advance(10_000);
        for (const load of ['first', 'reload']) assert.equal((await browser.get(returnTo)).status, 200, load);
        const denied = await browser.submit(returnTo, '/oauth/authorize', { decision: 'deny' });
        assert.match(denied.location ?? '', /error=access_denied/);
        assert.equal((await browser.get(returnTo)).status, 303, 'it asks again');
      }
    },
  ],
  [
    'the answer to a request spends its fresh sign-in, also an answer without a page or a refusal',
    async (bench) => {
      const { server } = bench;
      const { cookie, fields, person, clientId } = await prepareRequest(bench);
      await obtainCode(server, person, { client_id: clientId });
      for (const [session, extra, answer] of [
        [cookie, { prompt: 'login' }, 'code'],
        ['', { prompt: 'login', scope: 'unknown' }, 'error'],
      ] as const) {
        const browser = createFormClient(server.url, new Map([['trivet_session', session.split('=')[1] ?? '']]));
        const returnTo = readReturnTo(await browser.get(toPath({ ...fields, ...extra })));
        browser.jar.set('trivet_session', (await signIn(server, person.user)).split('=')[1] ?? '');
        const { location } = await browser.get(returnTo);
        assert.ok(new URL(location ?? '').searchParams.has(answer), location ?? '');
        assert.equal(browser.jar.has('trivet_again'), false);
      }
    },
  ],
  [
    'a person who uses another account is still asked for the consent that the client prompts for',
    async (bench) => {
      const { server } = bench;
      const { cookie, fields, clientId } = await prepareRequest(bench);
      const other = await createPerson(server);
      await obtainCode(server, other, { client_id: clientId });
      const browser = createFormClient(server.url, new Map([['trivet_session', cookie.split('=')[1] ?? '']]));
      const { body } = await browser.get(toPath({ ...fields, prompt: 'consent' }));
      const another = /href="([^"]+)"[^>]*>Use another account/.exec(body)?.[1]?.replaceAll('&amp;', '&') ?? '';
      const returnTo = readReturnTo(await browser.get(another));
      browser.jar.set('trivet_session', (await signIn(server, other.user)).split('=')[1] ?? '');
      assert.equal((await browser.get(returnTo)).status, 200, 'allowed before, and asked all the same');
    },
  ],
  [
    'a new sign-in counts on a machine whose clock is two seconds behind that of the machine that asked for it',
    async (bench) => {
      const { server } = bench;
      const { cookie, fields, person } = await prepareRequest(bench);
      server.advance(2000);
      const sent = await authorize(server, cookie, { ...fields, prompt: 'login' });
      // The machine to which the browser comes back.
      server.advance(-2000);
      const returnTo = readReturnTo({ location: sent.headers.get('location') });
      const open = async (session: string) =>
        (await request(server.url + returnTo, { headers: { cookie: `${session}; ${readAgainCookie(sent)}` } })).status;
      assert.equal(await open(cookie), 303, 'the session that was not enough');
      assert.equal(await open(await signIn(server, person.user)), 200);
    },
  ],
  [
    'a session that a provider opened without a question is no fresh sign-in',
    async (bench) => {
      const { server } = bench;
      const { store, world } = server;
      const { cookie, fields, person } = await prepareRequest(bench);
      const browser = createFormClient(server.url, new Map([['trivet_session', cookie.split('=')[1] ?? '']]));
      const returnTo = readReturnTo(await browser.get(toPath({ ...fields, prompt: 'login' })));
      const open = async (authTimeMs: number) => {
        const session = { user: person.user, method: 'upstream', authTimeMs, address: '-', userAgent: '' } as const;
        browser.jar.set('trivet_session', (await createSession(store, world, session)).token);
        return (await browser.get(returnTo)).status;
      };
      assert.equal(await open(world.nowMs() - 3_600_000), 303);
      assert.equal(await open(world.nowMs()), 200);
    },
  ],
  [
    'what came back from a sign-in passes for no other browser, no other request, and for an hour only',
    async (bench) => {
      const { server } = bench;
      const { cookie, fields, person } = await prepareRequest(bench);
      const sent = await authorize(server, cookie, { ...fields, prompt: 'login' });
      const returnTo = readReturnTo({ location: sent.headers.get('location') });
      const own = readAgainCookie(sent);
      const foreign = readAgainCookie(await authorize(server, cookie, { ...fields, prompt: 'login' }));
      const fresh = await signIn(server, person.user);
      server.advance(10_000);
      const open = async (path: string, again: string) =>
        (await request(server.url + path, { headers: { cookie: `${fresh}; ${again}` } })).status;
      assert.equal(await open(returnTo, ''), 303, 'without the cookie');
      assert.equal(await open(returnTo, foreign), 303, 'with the cookie of another browser');
      assert.equal(await open(`${returnTo}&nonce=n`, own), 303, 'a request that asks more');
      assert.equal(await open(returnTo.replace('state=s1', 'state=s2'), own), 303, 'another state');
      assert.equal(await open(returnTo, own), 200);
      server.advance(3_600_000);
      assert.equal(await open(returnTo, own), 303, 'an hour later');
    },
  ],
];

checkConformance('a fresh sign-in', cases);
