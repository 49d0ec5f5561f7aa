/** Runs `trivet doctor`: checks the settings, the store and the machine, and says what to do. */
import { Command } from 'commander';
import { print, printJson } from '../command-line/output.ts';
import { readConfig, readEnvironment } from '../config/config.ts';
import { findMisspeltVariables } from '../config/misspelt-variables.ts';
import { describeError, Failure } from '../errors.ts';
import { realWorld } from '../world.ts';
import { type Check, fail, ok, warn } from './doctor/check.ts';
import { checkMachine } from './doctor/check-machine.ts';
import { checkMail } from './doctor/check-mail.ts';
import { checkStore } from './doctor/check-store.ts';

export function createDoctorCommand(): Command {
  return new Command('doctor')
    .description(
      'Check settings, store, keys, notices, ports, clock, disk, certificate, proxies and mail; exit code 1 when one fails',
    )
    .option('--json', 'one JSON object a line')
    .action(examine);
}

async function examine({ json }: { readonly json?: true }): Promise<void> {
  const checks = [...checkSettings(), ...(await checkRest())];
  for (const check of checks) {
    if (json) printJson(check);
    else print(formatCheck(check));
  }
  const failed = checks.filter(({ state }) => state === 'fail').length;
  if (failed > 0) throw new Failure('unavailable', `${failed} of ${checks.length} checks failed`);
}

function formatCheck({ state, name, found, advice }: Check): string {
  const line = `${state.padEnd(4)}  ${name.padEnd(15)}  ${found}`;
  return advice === undefined ? line : `${line}\n${' '.repeat(23)}→ ${advice}`;
}

function checkSettings(): Check[] {
  const hints = findMisspeltVariables(readEnvironment()).map(({ variable, meant }) =>
    warn('settings', `${variable} is no setting`, `Was ${meant} meant?`),
  );
  try {
    readConfig();
    return [ok('settings', 'all are valid'), ...hints];
  } catch (error) {
    return [
      fail('settings', describeError(error), 'Correct them: trivet config shows where each comes from'),
      ...hints,
    ];
  }
}

/** Checks that need valid settings. */
async function checkRest(): Promise<Check[]> {
  try {
    const config = readConfig();
    return [
      ...(await checkStore(config, realWorld)),
      ...(await checkMachine(config, realWorld.nowMs())),
      await checkMail(config),
    ];
  } catch (error) {
    return error instanceof Failure && error.code === 'invalid'
      ? []
      : [fail('machine', describeError(error), 'This is a fault of the program')];
  }
}
