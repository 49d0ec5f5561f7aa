/** Cases of the protocol against one server and one database each engine: a case brings its own people and applications. */

import { type AuthorizationServer, type ServerOptions, startAuthorizationServer } from './authorization-server.ts';
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
