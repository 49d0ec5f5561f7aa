/** The tools that the example clients are built and run with, as Debian packages them. */
import { spawnSync } from 'node:child_process';

/** Why a test that needs these programs is skipped; false when they are there, and where the gate runs, which has to have them. */
export function skipWithout(
  packages: string,
  ...programs: readonly (readonly [program: string, ...args: string[]])[]
): string | false {
  const isThere = programs.every(([program, ...args]) => spawnSync(program, args).status === 0);
  return isThere || process.env.CI === 'true' ? false : `not installed: ${packages}`;
}
