import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { test } from 'node:test';

test('the packed package runs from node_modules, where Node does not strip types by itself', () => {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-package-'));
  execFileSync('npm', ['pack', '--silent', '--pack-destination', folder]);
  const [tarball] = readdirSync(folder);
  assert.ok(tarball);
  mkdirSync(join(folder, 'node_modules'));
  execFileSync('tar', ['-xzf', join(folder, tarball), '-C', folder]);
  execFileSync('mv', [join(folder, 'package'), join(folder, 'node_modules', 'trivet')]);
  for (const name of readdirSync('node_modules'))
    symlinkSync(resolve('node_modules', name), join(folder, 'node_modules', name));
  const version = execFileSync(process.execPath, [join(folder, 'node_modules/trivet/bin/trivet.js'), '--version'], {
    encoding: 'utf8',
  });
  assert.match(version, /^\d+\.\d+\.\d+\n$/);
});
