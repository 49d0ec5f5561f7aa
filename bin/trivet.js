#!/usr/bin/env node
// Starts the command line on the Node that the package brings along, whatever Node started this file.
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';

const node = createRequire(import.meta.url).resolve('node/bin/node');
const trivet = fileURLToPath(new URL('../src/cli/trivet.ts', import.meta.url));
const stripTypes = new URL('./strip-types.js', import.meta.url).href;
const options = trivet.includes('/node_modules/') ? ['--import', stripTypes] : [];
// Why: docs/decisions/0004-grpc-transport.md.
options.push('--max-semi-space-size=4');
const child = spawn(node, [...options, '--disable-warning=ExperimentalWarning', trivet, ...process.argv.slice(2)], {
  stdio: 'inherit',
});

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
child.on('exit', (code, signal) => {
  process.exitCode = code ?? 128 + (constants.signals[signal] ?? 0);
});
