#!/usr/bin/env node
// Starts the command line on Node 24: the one that runs this file, or else the one that the package brings along.
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';

const trivetUrl = new URL('../src/cli/trivet.ts', import.meta.url);
const trivet = fileURLToPath(trivetUrl);
const stripTypes = new URL('./strip-types.js', import.meta.url).href;
// The address has slashes on Windows too.
const options = trivetUrl.pathname.includes('/node_modules/') ? ['--import', stripTypes] : [];
// Why: docs/decisions/0004-grpc-transport.md.
options.push('--max-semi-space-size=2', '--no-parallel-scavenge', '--heap-growing-percent=100');
const child = spawn(
  findNode(),
  [...options, '--disable-warning=ExperimentalWarning', trivet, ...process.argv.slice(2)],
  { stdio: 'inherit' },
);

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
child.on('exit', (code, signal) => {
  process.exitCode = code ?? 128 + (constants.signals[signal] ?? 0);
});

// Why packages without install scripts: docs/decisions/0015-installation.md.
function findNode() {
  const major = Number(process.versions.node.split('.')[0]);
  if (major === 24) return process.execPath;
  const name = `node-${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`;
  const file = process.platform === 'win32' ? 'node.exe' : 'node';
  try {
    return createRequire(import.meta.url).resolve(`${name}/bin/${file}`);
  } catch {
    if (major > 24) return process.execPath;
    process.stderr.write(
      `Cannot start: this is Node ${process.versions.node}, and the package "${name}" with Node 24 is not installed\n` +
        'npm leaves it out with --omit=optional, and it exists for Linux (x64, arm64) and Windows (x64): start with Node 24 elsewhere\n',
    );
    process.exit(1);
  }
}
