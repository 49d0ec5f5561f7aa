#!/usr/bin/env node
// Starts the command line on Node 24: the one that runs this file, or else the one that the package brings along.
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';

const trivet = fileURLToPath(new URL('../src/cli/trivet.ts', import.meta.url));
const stripTypes = new URL('./strip-types.js', import.meta.url).href;
const options = trivet.includes('/node_modules/') ? ['--import', stripTypes] : [];
// Why: docs/decisions/0004-grpc-transport.md.
options.push('--max-semi-space-size=4');
const child = spawn(
  findNode(),
  [...options, '--disable-warning=ExperimentalWarning', trivet, ...process.argv.slice(2)],
  { stdio: 'inherit' },
);

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
child.on('exit', (code, signal) => {
  process.exitCode = code ?? 128 + (constants.signals[signal] ?? 0);
});

function findNode() {
  if (process.versions.node.startsWith('24.')) return process.execPath;
  try {
    return createRequire(import.meta.url).resolve('node/bin/node');
  } catch {
    process.stderr.write(
      `Cannot start: this is Node ${process.versions.node}, and the Node 24 of the package "node" is not there\n` +
        'npm leaves it out with --ignore-scripts; run "npm rebuild node", or start this file with Node 24\n',
    );
    process.exit(1);
  }
}
