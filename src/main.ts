/** Reads the configuration, starts the program, and waits for SIGTERM or SIGINT to stop it; app.ts has the order of a stop. */
import { type App, startApp } from './app.ts';
import { readConfig, readEnvironment } from './config/config.ts';
import { findMisspeltVariables } from './config/misspelt-variables.ts';
import { describeError, isFailure, isSystemError } from './errors.ts';
import { type CountGarbage, createGarbageCounter, openCollector } from './memory/garbage.ts';
import { waitForStopSignal } from './stop-signal.ts';
import { realWorld } from './world.ts';

/** How long a start that a signal ends may take to close what it has opened. */
const END_START_MS = 5000;

/** Resolves once the program has stopped after SIGTERM or SIGINT. A signal more than a second later ends the process at once. */
export async function serve(): Promise<void> {
  const stopped = waitForStopSignal();
  const collector = openCollector();
  const app = await startUnlessStopped(stopped, createGarbageCounter(collector.collectYoung));
  for (const misspelt of findMisspeltVariables(readEnvironment()))
    app.log.warn(misspelt, 'Ignored a variable that is no setting');
  // A fifth of the heap is garbage of the start. Left to V8, its first collection stops the event loop for 30 to 50 ms in the
  // middle of the first busy second.
  collector.collectAll();
  // The program that started the service may have closed its output.
  process.stdout.on('error', () => {});
  process.stdout.write(`${app.banner}\n`);
  const signal = await stopped;
  app.log.info({ signal }, 'stopping');
  await app[Symbol.asyncDispose]();
  app.log.info('stopped');
}

/** A signal during the start ends the process with exit code 0, as a signal after it does. */
async function startUnlessStopped(stopped: Promise<NodeJS.Signals>, countGarbage: CountGarbage): Promise<App> {
  const stopping = new AbortController();
  const starting = startApp(readConfig(), { countGarbage, stopping: stopping.signal });
  const first = await Promise.race([starting, stopped]);
  if (typeof first === 'object') return first;
  stopping.abort();
  const ended = starting.then((app) => app[Symbol.asyncDispose]()).catch(() => {});
  await Promise.race([ended, realWorld.sleep(END_START_MS)]);
  process.exit(0);
}

if (import.meta.main) {
  try {
    await serve();
    process.exit(0);
  } catch (error) {
    const isPlain = isFailure(error) || isSystemError(error);
    process.stderr.write(`${isPlain ? error.message : ((error as Error).stack ?? describeError(error))}\n`);
    process.exit(isFailure(error) && error.code === 'invalid' ? 2 : 1);
  }
}
