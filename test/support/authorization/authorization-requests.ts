/** Authorization requests, and checks of the answers to them. */
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import {
  type Answer,
  CALLBACK,
  createPerson,
  type Fields,
  readRedirect,
  registerApplication,
} from './authorization-server.ts';
import type { Bench } from './conformance.ts';

export async function prepareRequest({ server }: Bench, form: Parameters<typeof registerApplication>[1] = {}) {
  const person = await createPerson(server);
  const created = await registerApplication(server, form);
  const redirectUri = form.redirectUris?.[0] ?? CALLBACK;
  const fields: Fields = { client_id: created.clientId, redirect_uri: redirectUri, response_type: 'code', state: 's1' };
  return { ...created, person, cookie: person.cookie, fields };
}

export function without(fields: Fields, ...names: string[]): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)));
}

/** Checks that the refusal is shown to the person and not redirected. */
export function assertShown(answer: Answer, status = 400): void {
  assert.equal(answer.status, status, answer.headers.get('location') ?? answer.text);
  assert.equal(answer.headers.get('location'), null);
  assert.match(answer.headers.get('content-type') ?? '', /^text\/html/);
}

export function assertRedirectedError({ server }: Bench, answer: Answer, error: string): void {
  const parameters = readRedirect(answer);
  assert.ok([302, 303].includes(answer.status), `${answer.status} ${answer.text.slice(0, 300)}`);
  assert.deepEqual(
    [parameters.get('error'), parameters.get('state'), parameters.get('iss'), parameters.get('code')],
    [error, 's1', server.url, null],
  );
}

/** The cookie of a browser that was sent to sign in. */
export function readAgainCookie(answer: Answer): string {
  const lines = answer.headers.getSetCookie();
  return lines.find((line) => line.startsWith('trivet_again='))?.split(';')[0] ?? '';
}

export const VERIFIER = 'abcdefghijklmnopqrstuvwxyz-._~0123456789ABCDEFG';
export const CHALLENGE = hash('sha256', VERIFIER, 'base64url');
export const PKCE: Fields = { code_challenge: CHALLENGE, code_challenge_method: 'S256' };
