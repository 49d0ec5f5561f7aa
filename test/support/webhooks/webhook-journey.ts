/** The real program with a person, a token and the repository grace/doors, for the tests of one file. */
import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { runTrivet } from '../programs/run-trivet.ts';
import { type Program, startProgram } from '../programs/start-program.ts';
import { createStorePlace, readServiceEngine } from '../store/engines.ts';

/** The path of the hooks of grace/doors. */
export const HOOKS = '/repos/grace/doors/hooks';
/** Bounds a wait for many processes, in case one of them does not answer. */
export const PATIENTLY = { timeout: 180_000 };

export interface WebhookJourney {
  readonly httpUrl: string;
  /** With the scopes all_hook and all_projects. */
  readonly token: string;
  /** Runs the command line beside the service; fails unless it ends with 0. */
  trivet(...argv: string[]): Promise<string>;
  /** Calls a path below /api/v5. Returns the status, and the JSON if there is any. */
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into any answer
  call(method: string, path: string, json?: unknown): Promise<[number, any]>;
  createHook(json: object): Promise<{ id: number; url: string }>;
  /** Creates a hook for one test only. */
  withHook(json: object, run: (hook: { id: number }) => Promise<void>): Promise<void>;
}

export function useWebhookJourney(settings: Readonly<Record<string, string>> = {}): WebhookJourney {
  const environment: Record<string, string> = { WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8', ...settings };
  let program: Program;
  let token: string;

  before(async () => {
    const { dataDir, databaseUrl } = await createStorePlace(readServiceEngine());
    if (databaseUrl !== undefined) environment.DATABASE_URL = databaseUrl;
    program = await startProgram(environment, dataDir);
    await journey.trivet('user', 'create', '--login', 'grace', '--name', 'Grace');
    const made = ['token', 'create', '--user', 'grace', '--name', 't', '--scope', 'all_hook', 'all_projects'];
    token = await journey.trivet(...made);
    await journey.trivet('repo', 'create', 'grace/doors');
  });
  after(async () => {
    await program[Symbol.asyncDispose]();
  });

  const journey: WebhookJourney = {
    get httpUrl() {
      return program.httpUrl;
    },
    get token() {
      return token;
    },
    async trivet(...argv) {
      const run = await runTrivet(argv, { env: { ...environment, TRIVET_DATA_DIR: program.dataDir } });
      assert.equal(run.code, 0, `${argv.join(' ')}: ${run.stderr}`);
      return run.stdout.trim();
    },
    async call(method, path, json) {
      const response = await fetch(`${program.httpUrl}/api/v5${path}`, {
        method,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        ...(json === undefined ? {} : { body: JSON.stringify(json) }),
      });
      const text = await response.text();
      return [response.status, text === '' ? undefined : JSON.parse(text)];
    },
    async createHook(json) {
      const [status, hook] = await journey.call('POST', HOOKS, json);
      assert.equal(status, 201, JSON.stringify(hook));
      return hook;
    },
    async withHook(json, run) {
      const hook = await journey.createHook(json);
      try {
        await run(hook);
      } finally {
        await journey.call('DELETE', `${HOOKS}/${hook.id}`);
      }
    },
  };
  return journey;
}
