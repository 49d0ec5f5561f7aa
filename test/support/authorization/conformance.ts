/** Runs protocol cases against one server and database for each engine; each case creates its own people and applications. */

import { type EngineContext, forEachEngine } from '../store/engines.ts';
import {
  type AuthorizationServer,
  basic,
  createPerson,
  type Fields,
  obtainCode,
  obtainTokens,
  registerApplication,
  type ServerOptions,
  startAuthorizationServer,
} from './authorization-server.ts';

export interface Bench {
  readonly server: AuthorizationServer;
  /** Another process on the same database: another store, another server, the same issuer and clock. */
  readonly startAnother: () => Promise<AuthorizationServer>;
  readonly context: EngineContext;
}

export type Case = readonly [title: string, run: (bench: Bench) => Promise<void>];

export function checkConformance(title: string, cases: readonly Case[], options: ServerOptions = {}): void {
  forEachEngine(title, async (store, context) => {
    const clock = { offsetMs: 0, stepMs: 0 };
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
export async function prepareParties({ server }: Pick<Bench, 'server'>) {
  const person = await createPerson(server);
  const application = await registerApplication(server);
  return { ...application, person, credentials: basic(application.clientId, application.clientSecret) };
}

/** As `prepareParties`, and tokens of the person for the application. */
export async function prepareTokens(bench: Pick<Bench, 'server'>, scope = 'all_user all_hook') {
  const parties = await prepareParties(bench);
  return { ...parties, tokens: await obtainTokens(bench.server, parties.person, parties, scope) };
}

/** The same with a code instead of tokens, and the parameters of its exchange. */
export async function prepareExchange(bench: Bench, scope = 'all_user') {
  const { server } = bench;
  const parties = await prepareParties(bench);
  const code = await obtainCode(server, parties.person, { client_id: parties.clientId, scope });
  const tokenUrl = `${server.url}/oauth/token`;
  const exchange: Fields = {
    grant_type: 'authorization_code',
    code,
    client_id: parties.clientId,
    client_secret: parties.clientSecret,
  };
  return { ...parties, code, exchange, tokenUrl };
}
