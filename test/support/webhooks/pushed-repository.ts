/** A real bare repository with our hook, a clone that pushes to it, and a plain HTTP server that keeps what it receives. */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { runTrivet } from '../programs/run-trivet.ts';

/** Git uses this name where there is no commit. */
export const ZERO = '0'.repeat(40);

export interface PublishedEvent {
  readonly path: string;
  readonly key: string;
  readonly token: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into any event
  readonly event: any;
}

export interface Intake {
  readonly published: PublishedEvent[];
  readonly port: number;
  /** What the next requests are answered with. */
  status: number;
  /** A request that is larger is answered 413. */
  maxBytes: number;
  close(): Promise<void>;
}

export async function startIntake(port = 0): Promise<Intake> {
  const published: PublishedEvent[] = [];
  const intake = { published, port, status: 202, maxBytes: Number.POSITIVE_INFINITY, close: () => close(server) };
  const server: Server = createServer((request, response) => void answer(request, response));
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const body = await text(request);
    const status = body.length > intake.maxBytes ? 413 : intake.status;
    const event = JSON.parse(body);
    if (status === 202)
      published.push({
        path: request.url ?? '',
        key: String(request.headers['idempotency-key']),
        token: String(request.headers.authorization),
        event,
      });
    response.writeHead(status, { 'content-type': 'application/json' }).end('{"message":"for a test"}');
  };
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  intake.port = (server.address() as AddressInfo).port;
  return intake;
}

async function close(server: Server): Promise<void> {
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
}

export interface PushBench {
  readonly bare: string;
  readonly work: string;
  readonly intake: Intake;
  readonly git: (...argv: string[]) => string;
  /** Resolves with the output of the hook. */
  readonly push: (...argv: string[]) => Promise<string>;
  readonly commit: (file: string, message: string) => string;
  readonly waiting: () => string[];
}

export interface PushTarget {
  /** The URL of a real service; by default that of the plain server. */
  readonly url?: string;
  readonly token?: string;
  readonly repository?: string;
  readonly objectFormat?: 'sha1' | 'sha256';
}

export async function preparePushes(t: TestContext, target: PushTarget = {}): Promise<PushBench> {
  const { token = 'tvt_p_test', repository = 'acme/doors', objectFormat = 'sha1' } = target;
  const folder = mkdtempSync(join(tmpdir(), 'trivet-git-'));
  const intake = await startIntake();
  t.after(async () => {
    await intake.close().catch(() => {});
    rmSync(folder, { recursive: true, force: true });
  });
  const bare = join(folder, 'doors.git');
  const work = join(folder, 'work');
  execFileSync('git', ['init', '-q', '--bare', '-b', 'main', `--object-format=${objectFormat}`, bare]);
  execFileSync('git', ['init', '-q', '-b', 'main', `--object-format=${objectFormat}`, work]);
  const git = (...argv: string[]) => execFileSync('git', argv, { cwd: work, encoding: 'utf8', stdio: 'pipe' }).trim();
  git('config', 'user.name', 'Grace');
  git('config', 'user.email', 'grace@example.com');
  git('remote', 'add', 'origin', bare);
  writeFileSync(join(folder, 'token'), `${token}\n`);
  const url = target.url ?? `http://127.0.0.1:${intake.port}`;
  const installed = await runTrivet([
    'git-hook',
    'install',
    bare,
    '--repo',
    repository,
    '--url',
    url,
    '--token-file',
    join(folder, 'token'),
  ]);
  assert.equal(installed.code, 0, installed.stderr);
  // No process may outlive a test.
  appendHookOption(join(bare, 'hooks', 'post-receive'), '--no-background');
  return {
    bare,
    work,
    intake,
    git,
    push: (...argv) => pushFrom(work, argv),
    commit: (file, message) => {
      appendFileSync(join(work, file), `${message}\n`);
      git('add', '-A');
      git('commit', '-qm', message);
      return git('rev-parse', 'HEAD');
    },
    waiting: () => readSpool(bare),
  };
}

export function appendHookOption(hook: string, option: string): void {
  const lines = execFileSync('cat', [hook], { encoding: 'utf8' }).trimEnd();
  writeFileSync(hook, `${lines} ${option}\n`);
}

export function pushFrom(work: string, argv: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile('git', ['push', '-q', 'origin', ...argv], { cwd: work }, (error, _, stderr) =>
      error === null ? resolve(stderr) : reject(new Error(stderr)),
    );
  });
}

export function readSpool(bare: string): string[] {
  const folder = join(bare, 'trivet-spool');
  return existsSync(folder) ? readdirSync(folder).filter((file) => file.endsWith('.json')) : [];
}
