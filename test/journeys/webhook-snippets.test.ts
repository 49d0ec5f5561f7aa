/** Runs the programs of docs/how-to/verify-deliveries.md, and recomputes the examples of the pages beside it. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { eventSchema } from '../../src/webhooks/events/event.ts';
import { signBody, standardKey } from '../../src/webhooks/profiles/signature.ts';

const section = readFileSync('docs/how-to/verify-deliveries.md', 'utf8');
const wire = readFileSync('docs/reference/deliveries.md', 'utf8');
const events = readFileSync('docs/how-to/send-events.md', 'utf8');

function readSnippet(text: string, language: string, index = 0): string {
  const [, snippet] = [...text.matchAll(new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``, 'g'))][index] ?? [];
  assert.ok(snippet, `the page shows no ${language}`);
  return snippet;
}

const LANGUAGES: [language: string, file: string, command: string, ...before: string[]][] = [
  ['js', 'check.mjs', process.execPath],
  ['python', 'check.py', 'python3'],
  ['go', 'check.go', 'go', 'run'],
  ['php', 'check.php', 'php'],
  ['ruby', 'check.rb', 'ruby'],
  ['sh', 'check.sh', 'sh'],
];

const KEY = "It's a Secret to Everybody";
const BODY = Buffer.from('{"text":"Grüße\\n","more":[1,2]}');

for (const [language, file, command, ...before] of LANGUAGES)
  test(`the ${language} program accepts a genuine delivery and refuses others`, { skip: isMissing(command) }, (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'trivet-snippet-'));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    const path = join(folder, file);
    writeFileSync(path, readSnippet(section, language));
    const check = (key: string, header: string, body: Buffer) =>
      spawnSync(command, [...before, path, key, header], { input: body }).status;
    const header = signBody(Buffer.from(KEY), BODY);
    assert.equal(check(KEY, header, BODY), 0);
    assert.equal(check('another key', header, BODY), 1);
    assert.equal(check(KEY, header, Buffer.concat([BODY, Buffer.from(' ')])), 1);
    assert.equal(check(KEY, `${header.slice(0, -1)}${header.endsWith('0') ? '1' : '0'}`, BODY), 1);
    assert.equal(check(KEY, '', BODY), 1);
    const odd = spawnSync(command, [...before, path, KEY, 'sha256=é'], { input: BODY, encoding: 'utf8' });
    // "go run" names the status of the program.
    assert.deepEqual([odd.status, odd.stderr], [1, language === 'go' ? 'exit status 1\n' : '']);
  });

test('the sh program does not end with 0 without openssl, or when openssl computes nothing', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-snippet-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'check.sh');
  writeFileSync(path, readSnippet(section, 'sh'));
  const check = () =>
    spawnSync('/bin/sh', [path, KEY, 'sha256='], { input: '{"forged":true}', env: { PATH: folder } }).status;
  assert.equal(check(), 2, 'no openssl');
  writeFileSync(join(folder, 'openssl'), '#!/bin/sh\n', { mode: 0o755 });
  assert.equal(check(), 2, 'no output');
});

/** The gate installs all of them; elsewhere, languages that are not installed are left out. */
function isMissing(command: string): string | false {
  if (process.env.CI === 'true') return false;
  try {
    execFileSync('which', [command], { stdio: 'ignore' });
    return false;
  } catch {
    return `${command} is not installed`;
  }
}

test('the sample of the page is genuine', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-snippet-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, 'check.sh'), readSnippet(section, 'sh'));
  const run = spawnSync('sh', ['-c', readSnippet(section, 'sh', 1)], { cwd: folder, encoding: 'utf8' });
  assert.equal(run.stdout, 'genuine\n', run.stderr);
});

test('the program for webhook-signature takes the key and former keys, and refuses what is old or changed', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-snippet-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'check.mjs');
  writeFileSync(path, readSnippet(section, 'js', 1));
  const sign = (key: string, time: number) => {
    const mac = createHmac('sha256', standardKey(Buffer.from(key)))
      .update(`id.${time}.`)
      .update(BODY);
    return `v1,${mac.digest('base64')}`;
  };
  const check = (key: string, time: number, header: string, body: Buffer = BODY) =>
    spawnSync(process.execPath, [path, key, 'id', String(time), header], { input: body }).status;
  const now = Math.floor(Date.now() / 1000);
  const whsec = `whsec_${Buffer.from('another').toString('base64')}`;
  for (const key of [KEY, whsec]) {
    assert.equal(check(key, now, sign(key, now)), 0);
    assert.equal(check(key, now, `${sign('new', now)} ${sign(key, now)}`), 0, 'a former key');
    assert.equal(check(key, now, sign('new', now)), 1);
    assert.equal(check(key, now - 600, sign(key, now - 600)), 1, 'old');
    assert.equal(check(key, now, sign(key, now), Buffer.from('{}')), 1);
  }
});

test('the program for a password accepts it and nothing else', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-snippet-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'check.mjs');
  writeFileSync(path, readSnippet(section, 'js', 2));
  const check = (token: string) => spawnSync(process.execPath, [path, KEY, token]).status;
  assert.deepEqual([KEY, `${KEY} `, KEY.slice(1), 'é', ''].map(check), [0, 1, 1, 1, 1]);
});

test('the example signature of docs/reference/deliveries.md is right', () => {
  const row = /\| `(It's[^`]*)` \| `([^`]*)` \| `(sha256=[0-9a-f]{64})` \|/.exec(wire);
  assert.ok(row);
  assert.equal(signBody(Buffer.from(row[1] ?? ''), Buffer.from(row[2] ?? '')), row[3]);
});

test('the smallest event of docs/how-to/send-events.md is valid', () => {
  const event = eventSchema.parse(JSON.parse(readSnippet(events, 'json')));
  assert.equal(event.kind, 'push');
});
