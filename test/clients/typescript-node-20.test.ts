/** `clients/typescript` on the oldest Node that it promises, 20: compiled by a gateway, since Node 20 runs no TypeScript. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { runTool } from '../support/basics/client-tools.ts';
import { findNodeFolder, globalInstallSkip } from '../support/deploy/global-install.ts';
import { startProgram } from '../support/programs/start-program.ts';

const NODE = '20.20.2';
const TSC = resolve('node_modules/typescript/bin/tsc');
const OPTIONS = '--ignoreConfig --strict --module nodenext --types node --target es2022 --skipLibCheck';
/** The library of Node 20. */
const LIBRARY = '--lib es2023';
const SOURCES = resolve('clients/typescript');

const folder = mkdtempSync(join(tmpdir(), 'trivet-node-20-'));
const compiled = join(folder, 'clients', 'typescript');
after(() => rmSync(folder, { recursive: true, force: true }));

before(() => {
  // The folders lie as in a clone, where proto/ is two folders above.
  cpSync('proto', join(folder, 'proto'), { recursive: true });
  cpSync(join(SOURCES, 'package.json'), join(compiled, 'package.json'));
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
});

test('the TypeScript client compiles with the library of Node 20', () => {
  const files = globSync(join(SOURCES, '*.ts'));
  assert.ok(files.length > 5);
  const emit = ['--rewriteRelativeImportExtensions', '--rootDir', SOURCES, '--outDir', compiled];
  const command = [TSC, ...`${OPTIONS} ${LIBRARY}`.split(' '), ...emit, ...files];
  const { status, stdout, stderr } = spawnSync(process.execPath, command, { encoding: 'utf8' });
  assert.deepEqual({ status, stdout, stderr }, { status: 0, stdout: '', stderr: '' });
});

test('the TypeScript client, compiled, routes and reports on Node 20, over HTTP and gRPC', {
  skip: globalInstallSkip,
}, async () => {
  const node = join(findNodeFolder(folder, NODE), 'node');
  assert.equal(await runTool(compiled, [node, '--version']), `v${NODE}\n`);
  await using program = await startProgram({ PARTS: 'prediction' });
  for (const way of [
    ['--http', program.httpUrl],
    ['--grpc', program.grpcAddress],
  ]) {
    const output = await runTool(compiled, [node, 'example.js', '--requests', '40', ...way]);
    assert.match(output, /prior@1': 40.*\nreported: \{ accepted: 120, refused: 0, dropped: 0 \}\n/);
  }
});

test('the README of the TypeScript client promises the Node that its package.json asks for', () => {
  const { engines } = JSON.parse(readFileSync(join(SOURCES, 'package.json'), 'utf8'));
  const [, promised] = /runs on Node ([\d.]+) or newer/.exec(readFileSync(join(SOURCES, 'README.md'), 'utf8')) ?? [];
  assert.deepEqual([promised, engines.node], [NODE.split('.')[0], `>=${promised}`]);
});
