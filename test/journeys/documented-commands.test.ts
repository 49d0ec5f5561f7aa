/**
 * Runs the shell blocks of every page, in their order, on a fresh store beside the real program. A block that cannot run
 * has a comment before it: `<!-- not run: REASON -->`, or `<!-- run by FILE and FILE -->` for the tests that run it: they read
 * the page, or have each word, option and path of the commands. A block with
 * the comment `<!-- printed by the commands above -->` must be in their output.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { findFreePort } from '../support/basics/free-port.ts';
import { type Program, startProgram } from '../support/programs/start-program.ts';
import { listPages } from '../support/rules/pages.ts';
import { listCommandParts, listShellBlocks, listShownOutputs, type ShellBlock } from '../support/rules/shell-blocks.ts';

const SIGN_UP = "printf 'a long password' | trivet user create --login ada --name Ada --password-stdin";
const MAKE_REPOSITORY = `trivet user create --login grace --name Grace >/dev/null
trivet repo create grace/doors
TOKEN=$(trivet token create --user grace --name page --scope all_hook all_projects --json | node -p 'JSON.parse(require("fs").readFileSync(0)).token')`;

/** Commands that run before the blocks of a page, for what its reader already has. */
const PREPARATION: Readonly<Record<string, string>> = {
  'docs/how-to/train-from-files.md':
    'trivet simulate --output observations.jsonl --duration 60 && head -5 observations.jsonl > candidates.jsonl',
  'docs/how-to/manage-people.md':
    "printf 'a long password' > password.txt; trivet user create --login grace --name Grace >/dev/null",
  'docs/how-to/connect-oauth-clients.md': SIGN_UP,
  'docs/how-to/send-events.md': `${MAKE_REPOSITORY}
git init --quiet --bare doors.git
printf %s "$TOKEN" > token`,
};

/** Files that a page shows, by the language of their block. */
const SHOWN_FILES: Readonly<Record<string, readonly [language: string, file: string]>> = {
  'docs/how-to/send-events.md': ['json', 'event.json'],
};

// Decisions record commands of the past, which are not instructions.
const PAGES = listPages().filter((page) => !page.startsWith('docs/decisions/'));

for (const page of PAGES) {
  const blocks = listShellBlocks(page);
  if (blocks.length === 0) continue;
  const runnable = blocks.filter(({ reason, runBy }) => reason === undefined && runBy.length === 0);
  test(`the commands of ${page} run as they are shown`, { timeout: 280_000 }, async (t) => {
    for (const block of blocks) checkMarker(page, block);
    if (runnable.length === 0) return;
    await using program = await startProgram({ WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' });
    const folder = mkdtempSync(join(tmpdir(), 'trivet-page-'));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    const ran = await runBlocks(page, runnable, { program, folder });
    assert.equal(ran.code, 0, `${ran.place}\n${ran.output}`);
    for (const shown of listShownOutputs(page)) assert.ok(ran.output.includes(shown), `${page}\n${ran.output}`);
  });
}

test('a block that fails is named', async () => {
  await using program = await startProgram();
  const folder = mkdtempSync(join(tmpdir(), 'trivet-page-'));
  const blocks = listShellBlocks('a.md', '```sh\ntrue\n```\n\n```sh\ntrivet no-such-command\n```\n');
  const ran = await runBlocks('a.md', blocks, { program, folder });
  rmSync(folder, { recursive: true });
  assert.deepEqual([ran.code, ran.place], [2, 'a.md:5']);
});

test('what no test runs of a block is found', () => {
  const commands =
    'trivet hook create a/b --url http://x \\\n  --name "Ada"   # --like that\ncurl "$URL/api/v5/user" -d a=b\n';
  assert.deepEqual(listPartsNotRun('a.md', commands, "trivet(['hook', 'list', '--urls']); get('/api/v5/users')"), [
    'create',
    '--url',
    '--name',
    '/api/v5/user',
  ]);
  assert.deepEqual(listPartsNotRun('a.md', commands, "readFileSync('a.md')"), []);
});

function checkMarker(page: string, { place, reason, runBy, text }: ShellBlock): void {
  if (reason !== undefined) assert.ok(reason.length >= 10, `${place} needs a reason`);
  for (const file of runBy) assert.ok(existsSync(file), `${place} names ${file}, which does not exist`);
  if (runBy.length > 0) assert.deepEqual(listPartsNotRun(page, text, runBy.map(readText).join('\n')), [], place);
}

function readText(file: string): string {
  return readFileSync(file, 'utf8');
}

/** Returns the parts of the commands that are in no test that the page names; empty if one of these tests reads the page. */
function listPartsNotRun(page: string, commands: string, tests: string): readonly string[] {
  if (tests.includes(page)) return [];
  return listCommandParts(commands).filter((part) => !new RegExp(`(?<![\\w-])${part}(?![\\w-])`).test(tests));
}

interface Scene {
  readonly program: Program;
  /** The folder that the commands run in. */
  readonly folder: string;
}

/** Runs the blocks in one shell, so that variables last; ends with what a block left in the background. */
async function runBlocks(page: string, blocks: readonly ShellBlock[], { program, folder }: Scene) {
  const shown = SHOWN_FILES[page];
  if (shown !== undefined) writeFileSync(join(folder, shown[1]), readShownFile(page, shown[0]));
  writeCommands(folder);
  const ports = await chooseFreePorts(program);
  const parts = blocks.map(({ place, text }) => `printf '%s\\n' '${place}' > place\n${text}`);
  const script = ['set -euo pipefail', PREPARATION[page] ?? '', ...parts].join('\n');
  const shell = spawn('bash', ['-c', usePorts(script, ports)], {
    cwd: folder,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...readEnvironment(program, folder) },
  });
  let output = '';
  for (const stream of [shell.stdout, shell.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  const [code] = (await once(shell, 'exit')) as [number | null];
  endGroup(shell.pid);
  return { code, output, place: readFileSync(join(folder, 'place'), 'utf8').trim() };
}

function readShownFile(page: string, language: string): string {
  return new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``).exec(readFileSync(page, 'utf8'))?.[1] ?? '';
}

/** `trivet` and `npx trivet`, as an installation has them. */
function writeCommands(folder: string): void {
  const bin = resolve('bin/trivet.js');
  writeFileSync(join(folder, 'trivet'), `#!/bin/sh\nexec "${process.execPath}" "${bin}" "$@"\n`);
  writeFileSync(join(folder, 'npx'), '#!/bin/sh\nexec "$@"\n');
  for (const name of ['trivet', 'npx']) chmodSync(join(folder, name), 0o755);
}

function readEnvironment(program: Program, folder: string): Record<string, string> {
  return {
    PATH: `${folder}:${process.env.PATH}`,
    HOME: folder,
    TRIVET_DATA_DIR: program.dataDir,
    BASE_URL: program.httpUrl,
    AUTH_URL: program.httpUrl,
    BASE: program.httpUrl,
    WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
  };
}

/** The ports that the pages show, with their replacements. */
async function chooseFreePorts(program: Program): Promise<ReadonlyMap<string, string>> {
  return new Map([
    ['8080', new URL(program.httpUrl).port],
    ['50051', program.grpcAddress.split(':').at(-1) ?? ''],
    ['9000', String(await findFreePort())],
  ]);
}

function usePorts(script: string, ports: ReadonlyMap<string, string>): string {
  return script.replaceAll(/\b(8080|50051|9000)\b/g, (port) => ports.get(port) ?? port);
}

function endGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // The group is gone: no block left a process in the background.
  }
}
