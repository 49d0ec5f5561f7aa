/**
 * Runs all tests, as `node --test` does, but in another order: the long files first. By name, journeys of a minute and more
 * would come last, and three of four places would be empty while the last one ends. Four files at once: a journey waits for
 * programs, disks and timers half of the time.
 */
import { globSync } from 'node:fs';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';

const TIMEOUT_MS = 300_000;
const LONG = ['test/{journeys,image,fleet,reference}/**/*.test.ts', 'src/console/**/*.test.ts'];

const long = globSync(LONG).sort();
const others = globSync(['src/**/*.test.ts', 'test/**/*.test.ts']).filter((file) => !long.includes(file));
const files = [...long, ...others.sort()];
if (files.length === 0) throw new Error('No file of tests was found: run this in the root of the repository');

// A signal ends the files that run, and then the PostgreSQL server that all of them share.
const stopping = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stopping.abort());

// Apart from the call, since the types do not know `globalSetupPath` yet.
const options = {
  files,
  concurrency: 4,
  timeout: TIMEOUT_MS,
  signal: stopping.signal,
  execArgv: [`--test-timeout=${TIMEOUT_MS}`],
  globalSetupPath: 'test/support/global-setup.ts',
};

run(options)
  .on('test:summary', ({ success }) => {
    if (!success) process.exitCode = 1;
  })
  .compose(new spec())
  .pipe(process.stdout);
