/** Messages of the compared servers to the process that measures them. */
import { Session } from 'node:inspector/promises';
import { groupProfile, type ProfileGroups } from './profile.ts';

export type Kind = 'refresh' | 'exchange' | 'introspect' | 'user';

export interface Ready {
  readonly port: number;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly tokenPath: string;
  readonly introspectPath: string;
  readonly userPath: string;
  /** Whether the server drops tokens beyond a thousand. */
  readonly holdsFewTokens?: true;
}

export type Question =
  | { readonly ask: 'prepare'; readonly kind: Kind; readonly count: number }
  | { readonly ask: 'commits'; readonly everyMs: number }
  | { readonly ask: 'cpu' | 'profile' | 'groups' };

/** Microseconds. */
export interface Cpu {
  /** Processor time of all threads, user and system. */
  readonly process: number;
  /** Processor time of the serving thread. */
  readonly mainThread: number;
}

export interface BenchServer {
  readonly ready: Ready;
  /** Refresh tokens, codes or access tokens, ready to be used. */
  prepare(kind: Kind, count: number): Promise<readonly string[]>;
  /** Commits a row; absent for a server that stores nothing. */
  commit?(): Promise<void>;
}

/** Runs in the server's own process and answers its parent. */
export function serveParent(server: BenchServer): void {
  process.on('message', (question: Question) => {
    void answer(server, question).then((value) => process.send?.(value));
  });
  process.on('disconnect', () => process.exit(0));
  process.send?.(server.ready);
}

const session = new Session();

async function answer(
  server: BenchServer,
  question: Question,
): Promise<readonly string[] | Cpu | ProfileGroups | number | true> {
  switch (question.ask) {
    case 'prepare':
      return await server.prepare(question.kind, question.count);
    case 'commits':
      return commitEvery(server, question.everyMs);
    case 'cpu':
      return { process: sum(process.cpuUsage()), mainThread: sum(process.threadCpuUsage()) };
    case 'profile':
      session.connect();
      await session.post('Profiler.enable');
      await session.post('Profiler.setSamplingInterval', { interval: 250 });
      await session.post('Profiler.start');
      return true;
    case 'groups': {
      const { profile } = await session.post('Profiler.stop');
      session.disconnect();
      return groupProfile(profile);
    }
  }
}

let commitTimer: NodeJS.Timeout | undefined;
let commits = 0;

/** Returns how many commits there were since the call before. */
function commitEvery(server: BenchServer, everyMs: number): number {
  clearInterval(commitTimer);
  const before = commits;
  commits = 0;
  const commit = () => void server.commit?.().then(() => commits++);
  if (everyMs > 0) commitTimer = setInterval(commit, everyMs);
  return before;
}

function sum({ user, system }: { readonly user: number; readonly system: number }): number {
  return user + system;
}
