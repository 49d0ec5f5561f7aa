/** Runs npm in a separate folder as a user starts it, without the variables that the npm of this run has set. */
import { execFileSync } from 'node:child_process';
import { delimiter } from 'node:path';

/** npm sets these variables for its scripts about the folder they run in; settings such as the registry or its authority stay. */
const OF_THIS_RUN =
  /^npm_(package|lifecycle|command|execpath|node_execpath|config_((local_|global_)?prefix|call|package)$)/;

/** The environment of a user whose `node` is in `nodeFolder`; without it, the environment of this run. */
export function createUserEnvironment(nodeFolder?: string): NodeJS.ProcessEnv {
  const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !OF_THIS_RUN.test(name)));
  if (nodeFolder === undefined) return environment;
  const folders = (process.env.PATH ?? '').split(delimiter).filter((path) => !path.includes('node_modules'));
  return { ...environment, PATH: [nodeFolder, ...folders].join(delimiter) };
}

export interface NpmRun {
  readonly version: string;
  readonly folder: string;
  /** Holds the `node` that npm runs on; without it, the one of this run. */
  readonly nodeFolder?: string;
}

export function runNpm({ version, folder, nodeFolder }: NpmRun, argv: readonly string[]): void {
  execFileSync('npx', ['--yes', `npm@${version}`, ...argv, '--no-audit', '--no-fund'], {
    cwd: folder,
    env: createUserEnvironment(nodeFolder),
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}
