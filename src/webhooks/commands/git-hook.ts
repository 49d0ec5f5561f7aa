/**
 * Runs `trivet git-hook` for a bare repository: installs the hook, publishes pushes, and sends spooled events. `post-receive` never
 * refuses a push: it prints problems, and exits with 0. A push waits for it, so this file loads little. `install` and `send` fail
 * like other commands.
 */
import { spawn } from 'node:child_process';
import { userInfo } from 'node:os';
import { resolve } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { Command } from 'commander';
import { print, printJson, remark } from '../../command-line/output.ts';
import { durationIn } from '../../command-line/time-option.ts';
import { describeError } from '../../errors.ts';
import { realWorld } from '../../world.ts';
import { LIMITS } from '../events/event-limits.ts';
import { createHttpSender } from '../git/http-sender.ts';
import { handlePostReceive } from '../git/post-receive.ts';
import { type SpoolReport, sendPatiently, sendSpool } from '../git/send-spool.ts';
import { openSpool } from '../git/spool.ts';
import { createInstall } from './git-hook-install.ts';
import { type Connection, DEFAULT_URL, parseRepository, readAddress, SETTINGS_FILE } from './git-hook-settings.ts';

const HOUR_MS = 3_600_000;
const SEND_ONCE_TIMEOUT_MS = 60_000;
const parseHours = durationIn({ bareUnit: 'h', minimum: 0, maximum: 24 * 365 });

export function createGitHookCommand(): Command {
  const command = new Command('git-hook').description('Publish the pushes to a bare git repository as events');
  command.addCommand(createInstall()).addCommand(createPostReceive()).addCommand(createSend());
  return command;
}

function addConnection(command: Command): Command {
  return command
    .option(
      '--url, --service <url>',
      `address of the service (default: from ${SETTINGS_FILE} in the repository, or ${DEFAULT_URL})`,
    )
    .option(
      '--token-file <file>',
      `file with a token of the scope events:write or all_hook (default: from ${SETTINGS_FILE})`,
    )
    .option('--git-dir <folder>', 'the bare repository', '.');
}

function createPostReceive(): Command {
  return addConnection(new Command('post-receive'))
    .description('The hook itself: reads what was pushed from standard input. Never refuses a push')
    .requiredOption(
      '--repository, --repo <owner/name>',
      'the repository here that the events belong to',
      parseRepository,
    )
    .option('--actor <login>', 'who pushes (default: the user of the system)')
    .option('--no-background', 'leave what could not be sent to the next push, start no process for it')
    .action(async (options: Connection & { repo: string; actor?: string; background: boolean }) => {
      try {
        await publishPush(options);
      } catch (error) {
        remark(`trivet: cannot publish this push: ${describeError(error)}`);
      }
    });
}

async function publishPush(
  options: Connection & { readonly repo: string; readonly actor?: string; readonly background: boolean },
): Promise<void> {
  const gitDir = resolve(options.gitDir);
  const login = options.actor ?? findSystemUser();
  const input = await buffer(process.stdin);
  if (input.length === 0) remark('trivet: nothing is published, since git-hook post-receive got no input');
  const report = await handlePostReceive({
    gitDir,
    repository: options.repo,
    input,
    actor: { username: login, name: login },
    pushOptions: await readPushOptions(),
    onGap: (reason) => remark(`trivet: an event of this push is not complete: ${reason}`),
    // The address is read only now: if it is missing, the events wait in the spool, as they do while the service is away.
    send: (entry, signal) => createHttpSender(readAddress(options))(entry, signal),
    onSpoolFailure: (reason) =>
      remark(`trivet: this push is sent without the spool, which cannot be written: ${reason}`),
    world: realWorld,
  });
  remarkTroubles(report);
  if (report.waiting === undefined) return;
  remark(`trivet: the webhooks of this push wait in trivet-spool until the service takes them: ${report.waiting}`);
  if (options.background) startSender(options, gitDir);
}

/** In a container a user may have a number and no name. */
function findSystemUser(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid-${process.getuid?.() ?? 'unknown'}`;
  }
}

/** Reads the options of `git push -o`, which git passes to hooks in numbered variables. */
async function readPushOptions(): Promise<string[]> {
  const environment = (await import('../../config/config.ts')).readEnvironment();
  const count = Math.min(Number(environment.GIT_PUSH_OPTION_COUNT ?? 0) || 0, LIMITS.pushOptions);
  return Array.from({ length: count }, (_, index) => environment[`GIT_PUSH_OPTION_${index}`] ?? '');
}

function remarkTroubles({ refused, stuck }: SpoolReport): void {
  for (const reason of refused) remark(`trivet: ${reason}`);
  for (const [file, reason] of stuck) remark(`trivet: "${file}" stays in trivet-spool: ${reason}`);
}

/** Starts a process that goes on sending after the push has ended; it ends at once if another such process runs. */
function startSender({ service, tokenFile }: Connection, gitDir: string): void {
  const argv = ['git-hook', 'send', '--git-dir', gitDir, '--hours', '24'];
  if (service !== undefined) argv.push('--service', service);
  if (tokenFile !== undefined) argv.push('--token-file', resolve(tokenFile));
  const program = process.argv[1] ?? '';
  // Git waits until no process holds the hook's output any more.
  spawn(process.execPath, [...process.execArgv, program, ...argv], { detached: true, stdio: 'ignore' }).unref();
}

function createSend(): Command {
  return addConnection(new Command('send'))
    .description('Send what waits in the spool of a repository')
    .option('--hours, --for <duration>', 'keep trying for this long, as 24h; a number alone is hours', parseHours, 0)
    .option('--json', 'print JSON')
    .action(async (options: Connection & { for: number; json?: true }) => {
      const spool = openSpool(resolve(options.gitDir), realWorld);
      const send = createHttpSender(readAddress(options));
      const report =
        options.for > 0
          ? await sendPatiently(spool, send, {
              untilMs: realWorld.nowMs() + options.for * HOUR_MS,
              world: realWorld,
            })
          : await sendSpool(spool, send, AbortSignal.timeout(SEND_ONCE_TIMEOUT_MS));
      remarkTroubles(report);
      const waiting = spool.list().length;
      if (options.json) printJson({ sent: report.sent, waiting, reason: report.waiting ?? null });
      else print(`${report.sent} sent, ${waiting} waiting${report.waiting ? ` (${report.waiting})` : ''}`);
    });
}
