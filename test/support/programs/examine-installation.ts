/** `trivet doctor` as a user runs it. */
import type { Check } from '../../../src/cli/doctor/check.ts';
import { findFreePort } from '../basics/free-port.ts';
import { runTrivet } from './run-trivet.ts';

/** On free ports, unless the environment names others. */
export async function examineInstallation(env: Readonly<Record<string, string>>, dataDir: string) {
  const ports = { HTTP_PORT: String(await findFreePort()), GRPC_PORT: String(await findFreePort()) };
  const run = await runTrivet(['doctor', '--json'], { env: { TRIVET_DATA_DIR: dataDir, ...ports, ...env } });
  const checks = run.stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Check]));
  return { ...run, find: (name: string) => checks.find((check) => check.name === name) };
}
