/**
 * Runs all tests as `node --test` does, but in another order: long files first, with short ones between them. Long files mostly
 * wait for programs, disks and timers, and short ones compute. In the order of names, the processor would be idle half of the time
 * while the journeys run, and three of four slots would be empty while the last journey ends.
 * A title that breaks the rule for titles fails the run. With CI=true, so does a skipped test, unless `test/allowed-skips.json` allows it.
 */
import { globSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { findTitleFaults } from '../test/support/rules/test-titles.ts';

const TIMEOUT_MS = 300_000;
/** For two cores, which four files keep busy. With six, browsers got so little processor time that pages took minutes. */
const CONCURRENCY = 4;
/** Files that take a minute and more. They start before all others. */
const LONGEST = [
  'test/journeys/{console-on-postgres,global-install-node-*,remote-webhooks,remote-commands,learning-kill,install}.test.ts',
  'test/journeys/{webhooks-delivery,documented-commands,wrong-clock}.test.ts',
  'src/console/console-pages.test.ts',
  'src/prediction/capacity/{unseen-pools,three-unlike-servers}.test.ts',
  'src/prediction/learning/trainer-worker.test.ts',
  'src/webhooks/commands/hook.test.ts',
  'test/image/*.test.ts',
  'test/fleet/*.test.ts',
];
const LONG = ['test/{journeys,reference}/**/*.test.ts', 'src/console/**/*.test.ts'];
const ALL = ['src/**/*.test.ts', 'test/**/*.test.ts'];
/** Short files between two long ones: chosen so that the last long file begins when a quarter of the short ones is left. */
const SHORT_AFTER_EACH_LONG = 3;
const MOST_SHOWN = 20;
const ALLOWED_SKIPS = 'test/allowed-skips.json';

function listFiles(): string[] {
  const longest = globSync(LONGEST).sort();
  const long = [...longest, ...except(globSync(LONG).sort(), longest)];
  const short = except(globSync(ALL).sort(), long);
  const mixed = long.flatMap((file, i) => [
    file,
    ...short.slice(i * SHORT_AFTER_EACH_LONG, (i + 1) * SHORT_AFTER_EACH_LONG),
  ]);
  return [...mixed, ...short.slice(long.length * SHORT_AFTER_EACH_LONG)];
}

function except(files: readonly string[], others: readonly string[]): string[] {
  return files.filter((file) => !others.includes(file));
}

interface FileTime {
  readonly file: string;
  readonly seconds: number;
}

function describeLongest(times: readonly FileTime[]): string {
  const longest = [...times].sort((one, other) => other.seconds - one.seconds).slice(0, MOST_SHOWN);
  const lines = longest.map(({ file, seconds }) => `${seconds.toFixed(1).padStart(7)} s  ${relative('.', file)}`);
  return `The files that took longest:\n${lines.join('\n')}\n`;
}

interface TestPlace {
  readonly file: string;
  readonly title: string;
}

function list(heading: string, lines: readonly string[]): string {
  return lines.length === 0 ? '' : `${heading}:\n${lines.map((line) => `  ${line}\n`).join('')}`;
}

function describeTitles(tests: readonly TestPlace[]): string {
  const faults = tests.flatMap(({ file, title }) =>
    findTitleFaults(title).map((fault) => `${relative('.', file)}: ${fault}`),
  );
  return list('Titles of another form', faults);
}

/** Lists skips that are not allowed, and allowed skips whose test did not run. */
function describeSkips(tests: readonly TestPlace[], skipped: readonly TestPlace[]): string {
  const allowed = JSON.parse(readFileSync(ALLOWED_SKIPS, 'utf8')) as readonly TestPlace[];
  const write = ({ file, title }: TestPlace): string => `${relative('.', file)}: ${title}`;
  return (
    list(`Skipped, and not in ${ALLOWED_SKIPS}`, except(skipped.map(write), allowed.map(write))) +
    list(`In ${ALLOWED_SKIPS}, and no test`, except(allowed.map(write), tests.map(write)))
  );
}

const files = listFiles();
if (files.length === 0) throw new Error('No file of tests was found: run this in the root of the repository');

// A signal ends the running files first, and then the PostgreSQL server that they share.
const stopping = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stopping.abort());

// A separate object, since the types of `run()` lack `globalSetupPath`.
const options = {
  files,
  concurrency: CONCURRENCY,
  timeout: TIMEOUT_MS,
  signal: stopping.signal,
  execArgv: [`--test-timeout=${TIMEOUT_MS}`],
  globalSetupPath: 'test/support/global-setup.ts',
};

const times: FileTime[] = [];
const tests: TestPlace[] = [];
const skipped: TestPlace[] = [];

function writeEnd(): void {
  const wrong = describeTitles(tests) + (process.env.CI === 'true' ? describeSkips(tests, skipped) : '');
  process.stdout.write(describeLongest(times) + wrong);
  if (wrong !== '') process.exitCode = 1;
}

run(options)
  .on('test:complete', ({ file = '', name, skip, todo }) => {
    tests.push({ file, title: name });
    if (skip !== undefined || todo !== undefined) skipped.push({ file, title: name });
  })
  .on('test:summary', ({ success, file, duration_ms }) => {
    if (!success) process.exitCode = 1;
    if (file !== undefined) times.push({ file, seconds: duration_ms / 1000 });
  })
  .compose(new spec())
  .on('end', writeEnd)
  .pipe(process.stdout, { end: false });
