/** The whole program in this process, with the pages of the console, for browsers and for plain requests. */
import assert from 'node:assert/strict';
import { startApp } from '../../../src/app.ts';
import type { User } from '../../../src/authorization/accounts/user-store.ts';
import { parseConfig } from '../../../src/config/config.ts';
import type { Store } from '../../../src/database/store.ts';
import { realWorld } from '../../../src/world.ts';
import { createFormClient, type FormClient, readHidden } from '../network/form-client.ts';
import { createMigratedPlace, openTestStore, readServiceEngine } from '../store/engines.ts';
import { addUser, PASSWORD } from './page-service.ts';

export interface ConsoleService {
  readonly url: string;
  readonly store: Store;
  addUser(login: string, isAdmin?: boolean): Promise<User>;
  /** A browser without a screen that has signed in. */
  openAs(login: string): Promise<FormClient>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** A service without accounts. Deliveries to loopback are allowed. */
export async function startConsoleService(environment: Readonly<Record<string, string>> = {}): Promise<ConsoleService> {
  await using undo = new AsyncDisposableStack();
  const place = undo.use(await createMigratedPlace(readServiceEngine()));
  const app = undo.use(
    await startApp(
      parseConfig({
        HTTP_PORT: '0',
        GRPC_PORT: '0',
        LOG_LEVEL: 'silent',
        TRIVET_DATA_DIR: place.dataDir,
        ...(place.databaseUrl === undefined ? {} : { DATABASE_URL: place.databaseUrl }),
        WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
        ...environment,
      }),
    ),
  );
  const store = undo.use(await openTestStore(place));
  const kept = undo.move();
  return {
    url: app.httpUrl,
    store,
    addUser: (login, isAdmin) => addUser({ store, world: realWorld }, login, isAdmin),
    async openAs(login) {
      const client = createFormClient(app.httpUrl);
      const answer = await client.submit('/sign-in', '/sign-in', { login, password: PASSWORD });
      assert.equal(answer.location, '/');
      return client;
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

/** Reads the token that every form of this person contains. */
export async function readCsrf(client: FormClient): Promise<{ readonly csrf_token: string }> {
  return { csrf_token: readHidden((await client.get('/account')).body, '/account').csrf_token ?? '' };
}
