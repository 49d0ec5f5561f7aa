/** Calls of the administration API, with checks of all of them: refusals, scopes, and callers with a part of the rights. */
import assert from 'node:assert/strict';
import type { Program } from '../programs/start-program.ts';

export const API = '/api/admin/v1';

export interface Sent {
  readonly token: string;
  readonly json?: unknown;
  readonly file?: Uint8Array<ArrayBuffer>;
}

export interface Answered {
  readonly status: number;
  readonly challenge: string | null;
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into any answer
  readonly body: any;
}

export async function send(program: Program, call: string, { token, json, file }: Sent): Promise<Answered> {
  const [method = '', path = ''] = call.split(' ');
  const type = json === undefined ? 'application/octet-stream' : 'application/json';
  const response = await fetch(`${program.httpUrl}${API}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': type },
    ...(json === undefined ? (file === undefined ? {} : { body: file }) : { body: JSON.stringify(json) }),
  });
  const isJson = response.headers.get('content-type')?.includes('json') ?? false;
  const body: unknown = isJson ? await response.json() : new Uint8Array(await response.arrayBuffer());
  return { status: response.status, challenge: response.headers.get('www-authenticate'), body };
}

/** Checks the common form of errors, and the reason. */
export async function checkProblems(program: Program, token: string): Promise<void> {
  const problems: [call: string, json: unknown, status: number, detail: RegExp][] = [
    ['GET /people/unknown', undefined, 404, /no person with the login "unknown"/],
    ['GET /people?limit=0', undefined, 400, /limit/],
    ['POST /people', { login: 'ada', name: 'A' }, 409, /the login "ada" is taken/],
    ['POST /people', { name: 'A' }, 400, /login/],
    ['POST /people/root/disable', {}, 409, /it is your own account/],
    ['POST /models/promote', { id: 'org/m' }, 400, /say which version/],
    ['POST /models/promote', { id: 'org/m@9' }, 404, /version 9/],
    ['POST /models/rollback', { model: 'copy' }, 409, /no other version was served/],
    ['GET /hooks/99', undefined, 404, /the webhook 99/],
    ['GET /hooks/1?repository=root/unknown', undefined, 404, /root\/unknown/],
    ['GET /hooks?repository=doors', undefined, 400, /must be OWNER\/NAME/],
    ['POST /hooks', { repository: 'root/doors', url: 'ftp://1.1.1.1/' }, 400, /must be http or https/],
    ['PATCH /hooks/1', { profile: 'unknown' }, 400, /profile/],
    ['POST /hooks/1/replay', { since: 'yesterday' }, 400, /ISO 8601/],
    ['GET /hooks/1/deliveries/9', undefined, 404, /has no delivery 9/],
    ['POST /repositories', { owner: 'unknown', name: 'x' }, 404, /no person or organization "unknown"/],
    ['POST /repositories', { owner: 'root', name: 'doors' }, 409, /exists already/],
    ['POST /repositories/root/doors/events', {}, 400, /either an event or the kind of a sample/],
    ['GET /audit?kind=nothing', undefined, 400, /kind/],
    ['GET /nothing', undefined, 404, /./],
    ['PUT /people/root/password', { password: 'a', delete_tokens: true }, 400, /"delete_tokens" is no field here/],
    ['POST /invitations', { login: 'x', name: 'X', send_mail: true }, 400, /allowed: login, name, email, sendMail$/],
    ['POST /people/root/disable', { login: 'root' }, 400, /"login" is no field here, none is allowed/],
    ['GET /hooks?repo=root/doors', undefined, 400, /"repo" is no field here, allowed: repository, state, after, limit/],
    ['GET /people?search=bob', undefined, 400, /"search" is no field here/],
    ['GET /hooks/1/deliveries?page=2', undefined, 400, /"page" is no field here/],
    ['POST /hooks/1/test?event=push', {}, 400, /"event" is no field here/],
    ['DELETE /people/root/tokens/1?all=true', undefined, 400, /"all" is no field here/],
  ];
  for (const [call, json, status, detail] of problems) {
    const answered = await send(program, call, { token, json });
    assert.equal(answered.status, status, `${call}: ${JSON.stringify(answered.body)}`);
    assert.match(answered.body.detail, detail, call);
  }
  const notAModel = await send(program, 'POST /models/import?model=x', { token, file: new Uint8Array([1, 2]) });
  assert.deepEqual([notAModel.status, notAModel.body.code], [400, 'invalid']);
}

export interface ScopeCheck {
  readonly called: ReadonlySet<string>;
  readonly make: (...scope: string[]) => Promise<string>;
  readonly token: string;
}

export interface Described {
  readonly operationId: string;
  readonly description: string;
}

export const WIDER: Readonly<Record<string, string>> = { 'models:read': 'models:write', 'events:write': 'all_hook' };
export const SCOPES = [
  'models:read',
  'models:write',
  'admin:people',
  'admin:audit',
  'admin:hooks',
  'admin:applications',
];

/** Checks that each operation of the OpenAPI document was called above, and is refused without its scope. */
export async function checkScopes(program: Program, { called, make, token: admin }: ScopeCheck): Promise<void> {
  const response = await fetch(`${program.httpUrl}/openapi.json`);
  const { paths } = (await response.json()) as { paths: Record<string, Record<string, Described>> };
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    path.startsWith(API) ? Object.entries(methods).map(([method, described]) => ({ path, method, described })) : [],
  );
  assert.deepEqual(new Set(operations.map(({ described }) => described.operationId)), called);
  const tokens = await Promise.all([...SCOPES, 'all_hook', 'predict'].map(async (name) => [name, await make(name)]));
  for (const { path, method, described } of operations) {
    const needs = /scope (\S+),/.exec(described.description)?.[1] ?? '';
    const call = `${method.toUpperCase()} ${path.slice(API.length).replace(/\{\w+\}/g, '1')}`;
    for (const [scope = '', token = ''] of tokens) {
      if (scope === needs || WIDER[needs] === scope) continue;
      const { status, challenge } = await send(program, call, { token });
      assert.equal(status, 403, `${scope} on ${call}`);
      assert.equal(challenge, `Bearer realm="trivet", error="insufficient_scope", scope="${needs}"`);
    }
  }
  const people = tokens.find(([name]) => name === 'admin:people')?.[1] ?? '';
  await checkEscalation(program, people);
  assert.equal((await send(program, 'GET /people', { token: admin })).status, 200);
}

/** Checks that a caller with a part of the rights cannot create or take over an account with all of them. */
export async function checkEscalation(program: Program, token: string): Promise<void> {
  const password = 'correct horse battery';
  const attempts: [call: string, json: unknown][] = [
    ['POST /people', { login: 'eve', name: 'Eve', isAdmin: true, password }],
    ['PUT /people/ada/password', { password }],
    ['PUT /people/ada/email', { email: 'eve@example.org' }],
    ['DELETE /people/ada/second-step', undefined],
    ['POST /people/ada/disable', {}],
    ['PUT /people/grace/admin', { isAdmin: true }],
    ['DELETE /people/ada/tokens/1', undefined],
  ];
  assert.equal((await send(program, 'POST /people', { token, json: { login: 'grace', name: 'G' } })).status, 200);
  for (const [call, json] of attempts) {
    const { status, challenge } = await send(program, call, { token, json });
    assert.equal(status, 403, call);
    assert.match(challenge ?? '', /scope="admin"/, call);
  }
}
