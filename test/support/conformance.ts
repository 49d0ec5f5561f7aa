/** Cases of the protocol against one server and one database each engine: a case brings its own people and applications. */

import {
  type AuthorizationServer,
  basic,
  createPerson,
  obtainTokens,
  registerApplication,
  type ServerOptions,
  startAuthorizationServer,
} from './authorization-server.ts';
import { type EngineContext, forEachEngine } from './engines.ts';

export interface Bench {
  readonly server: AuthorizationServer;
  /** Another process on the same database: another store, another server, the same issuer and clock. */
  readonly startAnother: () => Promise<AuthorizationServer>;
  readonly context: EngineContext;
}

export type Case = readonly [title: string, run: (bench: Bench) => Promise<void>];

export function checkConformance(title: string, cases: readonly Case[], options: ServerOptions = {}): void {
  forEachEngine(title, async (store, context) => {
    const clock = { offsetMs: 0 };
    await using servers = new AsyncDisposableStack();
    const server = servers.use(await startAuthorizationServer(store, { ...options, clock }));
    const startAnother = async () => {
      const another = await context.openAnother();
      return servers.use(await startAuthorizationServer(another, { ...options, clock, issuer: server.url }));
    };
    for (const [name, run] of cases) await context.t.test(name, () => run({ server, startAnother, context }));
  });
}

/** A fresh person and a fresh confidential application, which no other case knows. */
export async function prepareParties({ server }: Bench) {
  const person = await createPerson(server);
  const application = await registerApplication(server);
  return { ...application, person, credentials: basic(application.clientId, application.clientSecret) };
}

/** And tokens of the one for the other. */
export async function prepareTokens(bench: Bench, scope = 'all_user all_hook') {
  const parties = await prepareParties(bench);
  return { ...parties, tokens: await obtainTokens(bench.server, parties.person, parties, scope) };
}
