/** Starts programs on one database with a person, a token and a repository whose hooks all subscribe to pushes, for senders of events. */
import { rmSync } from 'node:fs';
import { createUser } from '../../../src/authorization/accounts/user-store.ts';
import { createPersonalToken } from '../../../src/authorization/tokens/personal-token.ts';
import { createSampleEvent } from '../../../src/webhooks/events/sample-event.ts';
import { realWorld } from '../../../src/world.ts';
import { type Program, startProgram } from '../programs/start-program.ts';
import { openTestStore, type StorePlace } from '../store/engines.ts';

const LOGIN = 'grace';
const EVENTS_PATH = `/api/v5/repos/${LOGIN}/doors/events`;

/** A push whose commit id is unique to the number. */
export function numberedPush(number: number) {
  const event = createSampleEvent('push', { username: LOGIN, name: 'Grace' }, 'main', Date.UTC(2026, 0, 1));
  return { ...event, after: number.toString(16).padStart(40, '0') };
}

export interface PublishingService extends AsyncDisposable {
  readonly programs: readonly Program[];
  readonly token: string;
  /** For commands beside them. */
  readonly environment: Readonly<Record<string, string>>;
  readonly hookIds: readonly number[];
  /** The URL for events of the program with this index, or of any program when there are fewer. */
  eventsUrl(index: number): string;
  call(method: string, path: string, json?: unknown): Promise<{ status: number; json: unknown }>;
}

export interface PublishingOptions {
  readonly place: StorePlace;
  readonly processes: number;
  /** URLs of receivers; each gets a hook. */
  readonly urls: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** The folder of the program; this repository unless given. */
  readonly folder?: string | undefined;
  /** Makes the person and the token once the programs run, where today's code does not know the schema of theirs. */
  readonly createToken?: (environment: Readonly<Record<string, string>>) => Promise<string>;
}

export async function startPublishingService(options: PublishingOptions): Promise<PublishingService> {
  await using undo = new AsyncDisposableStack();
  const { dataDir, databaseUrl } = options.place;
  undo.defer(() => rmSync(dataDir, { recursive: true, force: true }));
  const environment = {
    WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
    SECRET_KEYS: Buffer.alloc(32, 7).toString('base64'),
    LOG_LEVEL: 'error',
    ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }),
    ...options.environment,
  };
  const programs: Program[] = [];
  for (let count = 0; count < options.processes; count += 1)
    programs.push(
      undo.use(await startProgram(environment, databaseUrl === undefined ? dataDir : undefined, options.folder)),
    );
  const token = await (options.createToken?.(environment) ?? createToken(options.place));
  const call = async (method: string, path: string, json?: unknown) => {
    const response = await fetch(`${programs[0]!.httpUrl}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: json === undefined ? null : JSON.stringify(json),
    });
    const text = await response.text();
    return { status: response.status, json: text === '' ? undefined : (JSON.parse(text) as unknown) };
  };
  await call('POST', '/api/v5/user/repos', { name: 'doors' });
  const hookIds: number[] = [];
  for (const url of options.urls) {
    const { json } = await call('POST', `/api/v5/repos/${LOGIN}/doors/hooks`, { url, password: 'key' });
    hookIds.push((json as { id: number }).id);
  }
  const owned = undo.move();
  return {
    programs,
    token,
    environment: { ...environment, TRIVET_DATA_DIR: dataDir },
    hookIds,
    eventsUrl: (index) => `${programs[index % programs.length]!.httpUrl}${EVENTS_PATH}`,
    call,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function createToken(place: StorePlace): Promise<string> {
  await using store = await openTestStore(place);
  const blank = { email: null, isAdmin: false, passwordHash: null };
  const user = await createUser(store, realWorld, { login: LOGIN, name: 'Grace', ...blank });
  const scopes = ['all_hook', 'all_projects'] as const;
  const form = { userId: user.id, name: 'announcer', scopes, expiresAtMs: undefined };
  return (await createPersonalToken(store, realWorld, form)).secret;
}
