import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

/** What `npm ci` checks before it installs, for every platform and not just for the one of this machine. */

interface LockedPackage {
  readonly resolved?: string;
  readonly integrity?: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const lock = JSON.parse(readFileSync('package-lock.json', 'utf8')) as {
  readonly packages: Readonly<Record<string, LockedPackage>>;
};
const installed = Object.entries(lock.packages).filter(([path]) => path !== '');

/** Where Node would look for a package that the one at `path` asks for. */
function isLocked(path: string, name: string): boolean {
  const folders = path
    .split('/node_modules/')
    .map((_, depth, parts) => parts.slice(0, depth + 1).join('/node_modules/'));
  return [...folders, ''].some((folder) => `${folder === '' ? '' : `${folder}/`}node_modules/${name}` in lock.packages);
}

test('package-lock.json has the optional packages of every platform, without which npm 11 refuses to install', () => {
  const missing = installed.flatMap(([path, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies)
      .filter((name) => !isLocked(path, name))
      .map((name) => `${path} → ${name}`),
  );
  assert.ok(installed.some(([, locked]) => locked.optionalDependencies !== undefined));
  assert.deepEqual(missing, []);
});

test('package-lock.json pins the content of every package, and names no registry', () => {
  const offences = installed.filter(([, { resolved, integrity }]) => resolved !== undefined || integrity === undefined);
  assert.deepEqual(
    offences.map(([path]) => path),
    [],
  );
});
