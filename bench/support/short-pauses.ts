/** Starts a benchmark once more with Node flags that keep its own garbage collections short. */
import { spawnSync } from 'node:child_process';

/** With the 16 MB of Node's defaults, one collection of a load generator takes 8 to 30 ms: longer than what it measures. */
export const SHORT_PAUSES = ['--max-semi-space-size=1', '--no-parallel-scavenge'];

/** Ends this process with the exit code of the second one, in which it returns at once. */
export function restartWithShortPauses(): void {
  if (SHORT_PAUSES.every((flag) => process.execArgv.includes(flag))) return;
  const parameters = [...SHORT_PAUSES, ...process.execArgv, ...process.argv.slice(1)];
  const { status } = spawnSync(process.execPath, parameters, { stdio: 'inherit' });
  process.exit(status ?? 1);
}
