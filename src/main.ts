/** Reads the configuration, starts the program, waits for a signal, stops it in order. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { startApp } from './app.ts';
import { readConfig, readEnvironment } from './config/config.ts';
import { findMisspeltVariables } from './config/misspelt-variables.ts';
import { describeError, isFailure, isSystemError } from './errors.ts';

/** Resolves once the program has stopped after SIGTERM or SIGINT. A second signal ends the process at once. */
export async function serve(): Promise<void> {
  const stopped = waitForSignal();
  const app = await startApp(readConfig());
  for (const misspelt of findMisspeltVariables(readEnvironment()))
    app.log.warn(misspelt, 'Ignored a variable that is no setting');
  collectGarbage();
  process.stdout.write(`${app.banner}\n`);
  const signal = await stopped;
  app.log.info({ signal }, 'stopping');
  process.once('SIGTERM', () => process.exit(1));
  process.once('SIGINT', () => process.exit(1));
  await app[Symbol.asyncDispose]();
  app.log.info('stopped');
}

/**
 * Of the start: a fifth of the heap. Left to V8, this first collection stops the event loop for 30 to 50 ms in the middle of
 * the first busy second.
 */
function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  setFlagsFromString('--no-expose-gc');
}

function waitForSignal(): Promise<string> {
  return new Promise((resolve) => {
    process.once('SIGTERM', () => resolve('SIGTERM'));
    process.once('SIGINT', () => resolve('SIGINT'));
  });
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
