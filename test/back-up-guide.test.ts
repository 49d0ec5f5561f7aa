/** The guide backs a store up from a volume of Kubernetes, and restores it without a moment in which the volume has no store. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { listShellBlocks } from './support/rules/shell-blocks.ts';

/** Runs the commands of `exec` on a folder in the place of `/data`, and only records the others. With `$lost`, input is lost on its way. */
const STAND_IN = `#!${process.execPath}
const [verb, ...others] = process.argv.slice(2);
require('node:fs').appendFileSync(process.env.calls, verb + '\\n');
if (verb !== 'exec') process.exit(0);
const [program, ...argv] = others.slice(others.indexOf('--') + 1).map((part) => part.replaceAll('/data/', process.env.volume));
const file = program === 'trivet' ? [process.env.trivet] : [];
const stdio = [process.env.lost ? 'ignore' : 'inherit', 'inherit', 'inherit'];
process.exit(require('node:child_process').spawnSync(process.execPath, [...file, ...argv], { stdio }).status ?? 1);
`;

function createScene(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-guide-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const [volume, here, calls] = ['volume', 'here', 'calls'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  for (const each of [volume, here]) mkdirSync(each);
  writeFileSync(join(folder, 'kubectl'), STAND_IN, { mode: 0o755 });
  const [backUp, restore] = listShellBlocks('docs/how-to/back-up.md').filter(({ text }) => text.includes('kubectl'));
  const run = (block: typeof backUp, environment: Readonly<Record<string, string>> = {}) => {
    writeFileSync(calls, '');
    const env = { calls, volume: `${volume}/`, trivet: resolve('src/cli/trivet.ts'), TRIVET_DATA_DIR: volume };
    const options = { PATH: `${folder}:${process.env.PATH}`, ...env, ...environment };
    const { status, stderr } = spawnSync('/bin/sh', ['-c', block?.text ?? ''], {
      cwd: here,
      env: options,
      encoding: 'utf8',
    });
    return { status, stderr, calls: readFileSync(calls, 'utf8').trimEnd().split('\n').filter(Boolean) };
  };
  return {
    volume,
    here,
    backUp: () => run(backUp),
    restore: (environment?: Readonly<Record<string, string>>) => run(restore, environment),
  };
}

/** Stores a text, with keys of the same text. */
function store(folder: string, text: string): void {
  using database = new DatabaseSync(join(folder, 'trivet.db'));
  database.exec('CREATE TABLE IF NOT EXISTS notes (text)');
  database.prepare('INSERT INTO notes VALUES (?)').run(text);
  writeFileSync(join(folder, 'keys'), text);
}

function read(folder: string) {
  using database = new DatabaseSync(join(folder, 'trivet.db'), { readOnly: true });
  const notes = database
    .prepare('SELECT text FROM notes')
    .all()
    .map(({ text }) => text);
  return { notes, keys: readFileSync(join(folder, 'keys'), 'utf8') };
}

test('the guide copies a store and its keys out of a volume and back, and keeps the store that it replaces', (t) => {
  const { volume, here, ...scene } = createScene(t);
  store(volume, 'first');
  const backedUp = scene.backUp();
  assert.equal(backedUp.status, 0, backedUp.stderr);
  assert.equal(existsSync(join(volume, 'backup.db')), false);
  // As a service that was killed leaves it: the newest rows are in the log.
  using killed = new DatabaseSync(join(volume, 'trivet.db'));
  killed.exec('PRAGMA journal_mode = WAL; SELECT text FROM notes');
  store(volume, 'second');
  assert.ok(statSync(join(volume, 'trivet.db-wal')).size > 0);
  const restored = scene.restore();
  assert.equal(restored.status, 0, restored.stderr);
  assert.deepEqual(restored.calls, ['scale', 'wait', 'apply', 'wait', 'exec', 'exec', 'exec', 'delete', 'scale']);
  assert.deepEqual(read(volume), { notes: ['first'], keys: 'first' });
  const [former = ''] = globSync(join(volume, 'before-*'));
  assert.deepEqual(read(former), { notes: ['first', 'second'], keys: 'second' });
  assert.deepEqual(
    readdirSync(volume).filter((name) => !name.startsWith('before-')),
    ['keys', 'trivet.db'],
  );
  for (const name of ['keys', 'trivet.db']) assert.equal(statSync(join(volume, name)).mode & 0o777, 0o600, name);
  assert.deepEqual(readdirSync(here).sort(), ['backup.db', 'keys']);
});

test('the guide stops no service and changes no store in a folder without a backup', (t) => {
  const { volume, here, restore } = createScene(t);
  store(volume, 'present');
  for (const [name, content] of [
    ['keys', 'present'],
    ['backup.db', ''],
  ] as const) {
    writeFileSync(join(here, name), content);
    const run = restore();
    assert.notEqual(run.status, 0);
    assert.deepEqual(run.calls, []);
  }
  assert.deepEqual(read(volume), { notes: ['present'], keys: 'present' });
});

test('the guide leaves the present store in its place when the backup is damaged or does not arrive', (t) => {
  const { volume, here, restore } = createScene(t);
  store(volume, 'present');
  store(here, 'earlier');
  writeFileSync(join(here, 'backup.db'), readFileSync(join(here, 'trivet.db')));
  const lost = restore({ lost: 'yes' });
  assert.match(lost.stderr, /Not all of the backup arrived/);
  writeFileSync(join(here, 'backup.db'), 'this is a text, and no database\n'.repeat(200));
  const damaged = restore();
  assert.match(damaged.stderr, /file is not a database/);
  for (const { status, calls } of [lost, damaged]) {
    assert.notEqual(status, 0);
    assert.equal(calls.at(-1), 'exec', 'the service stays down until a person decides');
  }
  assert.deepEqual(read(volume), { notes: ['present'], keys: 'present' });
});
