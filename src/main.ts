/** Reads the configuration, starts the program, and waits for SIGTERM or SIGINT to stop it; app.ts has the order of a stop. */
import { startApp } from './app.ts';
import { readConfig, readEnvironment } from './config/config.ts';
import { findMisspeltVariables } from './config/misspelt-variables.ts';
import { describeError, isFailure, isSystemError } from './errors.ts';
import { createGarbageCounter, openCollector } from './memory/garbage.ts';
import { waitForStopSignal } from './stop-signal.ts';

/** Resolves once the program has stopped after SIGTERM or SIGINT. A signal more than a second later ends the process at once. */
export async function serve(): Promise<void> {
  const stopped = waitForStopSignal();
  const collector = openCollector();
  const app = await startApp(readConfig(), { countGarbage: createGarbageCounter(collector.collectYoung) });
  for (const misspelt of findMisspeltVariables(readEnvironment()))
    app.log.warn(misspelt, 'Ignored a variable that is no setting');
  // A fifth of the heap is garbage of the start. Left to V8, its first collection stops the event loop for 30 to 50 ms in the
  // middle of the first busy second.
  collector.collectAll();
  // Who started the service may have closed its output.
  process.stdout.on('error', () => {});
  process.stdout.write(`${app.banner}\n`);
  const signal = await stopped;
  app.log.info({ signal }, 'stopping');
  await app[Symbol.asyncDispose]();
  app.log.info('stopped');
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
