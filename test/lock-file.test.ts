import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

/** What `npm ci` checks before it installs, for every platform and not just for the one of this machine. */

interface LockedPackage {
  readonly resolved?: string;
  readonly integrity?: string;
  readonly engines?: { readonly node?: string } | readonly string[];
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const lock = JSON.parse(readFileSync('package-lock.json', 'utf8')) as {
  readonly packages: Readonly<Record<string, LockedPackage>>;
};
const installed = Object.entries(lock.packages).filter(([path]) => path !== '');

/** Returns true if the lock file has the package at a place where Node looks for it from `path`. */
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

/** Returns true if a range such as `^18.19.0 || >=20.6.0` has a version of Node 20; compares major numbers alone. */
function allowsNode20(range: string): boolean {
  return range.split('||').some((alternative) =>
    alternative
      .trim()
      .split(/(?<!=|<|>) +/)
      .every((comparator) => {
        const [, sign = '', major = ''] = /^(>=|>|<=|<|\^|~|=)? *v?(\d+|\*)/.exec(comparator) ?? [];
        if (major === '*') return true;
        return { '>=': 20 >= +major, '>': 20 >= +major, '<=': 20 <= +major, '<': 20 < +major }[sign] ?? +major === 20;
      }),
  );
}

test('every package of package-lock.json runs on Node 20, or npm warns those who install with it', () => {
  const refused = installed.flatMap(([path, { engines }]) => {
    const range = engines !== undefined && 'node' in engines ? engines.node : undefined;
    return range === undefined || allowsNode20(range) ? [] : [`${path}: ${range}`];
  });
  assert.ok(installed.some(([, { engines }]) => engines !== undefined));
  assert.deepEqual(refused, []);
  for (const range of ['>=22', '^18.0.0 || >=22.12.0', '6.* || 8.*']) assert.equal(allowsNode20(range), false, range);
});
