/** Shows in the demo how a push becomes signed deliveries. */
import { randomBytes } from 'node:crypto';
import { existsSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { print } from '../../command-line/output.ts';
import { Failure } from '../../errors.ts';
import { indent, printStep, runGit, runGitShown, runShown, type Stage, startTrivet } from './stage.ts';

export const DEMO_LOGIN = 'ada';
const REPOSITORY = `${DEMO_LOGIN}/widget`;

/** A person, a token, a repository, a webhook, a real push, and its delivery. */
export async function showWebhooks(stage: Stage): Promise<void> {
  if (!hasGit(stage)) {
    print('\n── Webhooks are left out: git is not installed');
    return;
  }
  printStep('A person, a token for git, and a repository');
  const password = randomBytes(12).toString('base64url');
  const { user, token } = accountCommands();
  await runShown(stage, user, password);
  print(`  password: ${password}`);
  writeFileSync(join(stage.folder, 'token'), await runShown(stage, token), { mode: 0o600 });
  await runShown(stage, ['repo', 'create', REPOSITORY]);
  await showDelivery(stage);
}

function accountCommands(): { readonly user: string[]; readonly token: string[] } {
  return {
    user: [
      'user',
      'create',
      '--login',
      DEMO_LOGIN,
      '--name',
      'Ada',
      '--email',
      'ada@example.com',
      '--password-stdin',
      '--admin',
    ],
    token: [
      'token',
      'create',
      '--user',
      DEMO_LOGIN,
      '--name',
      'git',
      '--scope',
      'all_user all_hook',
      '--expires',
      '1d',
    ],
  };
}

async function showDelivery(stage: Stage): Promise<void> {
  printStep('A receiver on this machine, and a webhook that signs what it sends there');
  const key = randomBytes(12).toString('base64url');
  const receiver = startTrivet(stage, ['listen', '--port', '0', '--secret', key]);
  try {
    const received = collect(receiver.stdout);
    const said = collect(receiver.stderr);
    await waitFor(() => said().includes('Listening on'), 'the receiver listens', stage);
    const url = /http:\S+/.exec(said())?.[0] ?? '';
    print(indent(said().trimEnd()));
    const created = ['hook', 'create', REPOSITORY, '--url', url, '--secret', key, '--json'];
    const { id } = JSON.parse(await runShown(stage, created)) as { id: number };
    await push(stage);
    await waitFor(() => received().length > 0, 'the delivery arrives', stage);
    await sleep(300, undefined, { signal: stage.signal });
    printStep('What the receiver saw, and what the delivery log keeps');
    print(indent(abridge(received())));
    await runShown(stage, ['hook', 'deliveries', REPOSITORY, String(id)]);
  } finally {
    receiver.kill();
  }
}

async function push(stage: Stage): Promise<void> {
  printStep('A real push to a bare repository with our post-receive hook');
  await runGit(stage, ['init', '--quiet', '--bare', 'widget.git']);
  const install = [
    'git-hook',
    'install',
    'widget.git',
    '--repo',
    REPOSITORY,
    '--url',
    stage.httpUrl,
    '--token-file',
    'token',
  ];
  await runShown(stage, install);
  await runGit(stage, ['clone', '--quiet', 'widget.git', 'widget']);
  writeFileSync(join(stage.folder, 'widget', 'README.md'), '# Widget\n');
  await runGit(stage, ['-C', 'widget', 'add', 'README.md']);
  await runGit(stage, ['-C', 'widget', 'commit', '--quiet', '-m', 'Say what a widget is']);
  await runGitShown(stage, ['-C', 'widget', 'push', '--quiet', 'origin', 'HEAD:main']);
}

const SHOWN_LINES = 18;

function abridge(text: string): string {
  const lines = text.trimEnd().split('\n');
  return lines.length <= SHOWN_LINES ? lines.join('\n') : [...lines.slice(0, SHOWN_LINES), '…'].join('\n');
}

function hasGit({ environment }: Stage): boolean {
  return (environment.PATH ?? '').split(delimiter).some((folder) => existsSync(join(folder, 'git')));
}

function collect(stream: Readable): () => string {
  let text = '';
  stream.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  return () => text;
}

const PATIENCE_MS = 20_000;

async function waitFor(isThere: () => boolean, what: string, { signal }: Stage): Promise<void> {
  const deadlineMs = Date.now() + PATIENCE_MS;
  while (!isThere()) {
    if (Date.now() > deadlineMs)
      throw new Failure('deadline', `Cannot go on: ${PATIENCE_MS / 1000} s were not enough until ${what}`);
    await sleep(50, undefined, { signal });
  }
}
