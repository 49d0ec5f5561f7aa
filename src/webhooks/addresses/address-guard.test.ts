import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { FORBIDDEN_TARGETS } from '../../../test/support/webhooks/forbidden-targets.ts';
import { isFailure } from '../../errors.ts';
import { createAddressGuard, type ExplainedRefusal } from './address-guard.ts';
import type { NameResolver } from './name-resolver.ts';

function answer(addresses: Record<string, readonly string[]>): NameResolver {
  const find = async (name: string, isWanted: (address: string) => boolean): Promise<string[]> => {
    const found = (addresses[name] ?? []).filter(isWanted);
    if (found.length === 0) throw Object.assign(new Error('no such name'), { code: 'ENOTFOUND' });
    return found;
  };
  return {
    resolve4: (name) => find(name, (address) => !address.includes(':')),
    resolve6: (name) => find(name, (address) => address.includes(':')),
  };
}

const resolver = answer({
  'public.example.com': ['93.184.215.14'],
  'both.example.com': ['93.184.215.14', '2606:2800:21f:cb07:6820:80da:af6b:8b2c'],
  'mixed.example.com': ['93.184.215.14', '10.0.0.1'],
  'mixed6.example.com': ['93.184.215.14', 'fd00::1'],
  'metadata.example.com': ['169.254.169.254'],
});
const guard = createAddressGuard({ allowCidrs: [], resolver });

async function refusalOf(url: string): Promise<string> {
  try {
    await guard.checkUrl(url);
    return 'allowed';
  } catch (error) {
    assert.ok(isFailure(error) && error.code === 'invalid');
    return error.message;
  }
}

for (const [why, url] of FORBIDDEN_TARGETS)
  test(`checkUrl() refuses ${why}, and asks no name server: ${JSON.stringify(url)}`, async () => {
    let questions = 0;
    const count = async () => {
      questions += 1;
      return ['93.184.215.14'];
    };
    const counting = createAddressGuard({ allowCidrs: [], resolver: { resolve4: count, resolve6: count } });
    assert.equal((await counting.vet(url)).kind, 'forbidden');
    assert.match(await refusalOf(url), /^Cannot use this url: it must /);
    assert.equal(questions, 0);
  });

const BROKEN: [url: string, reason: string][] = [
  ['ftp://example.com/', 'must be http or https, got "ftp"'],
  ['example.com/hook', 'must be a complete address, as https://example.com/hook'],
  ['http://example.com/a b', 'must not contain blanks, control characters, lone surrogates or backslashes'],
  ['http://example.com/\ud800', 'must not contain blanks, control characters, lone surrogates or backslashes'],
  ['http://user:secret@example.com/', 'must not contain a user name or a password'],
  ['http://example.com/#top', 'must not contain a fragment (#)'],
  [
    'http://example.com:22/',
    'must use port 80, 443 or one above 1023 that is no usual port of a database or another inner service, got 22',
  ],
  ['http://127.1/', 'must have its host in plain spelling, an IP address in the usual one'],
  ['http://localhost:3000/', 'must not be localhost'],
  ['http://intranet/', 'must name its host with a domain, got "intranet"'],
  ['http://db.internal/', 'must not name a host of a private network, got "db.internal"'],
  ['http://10.0.0.1/', 'must not be a private or reserved address, got "10.0.0.1"'],
  ['http://[fd00::1]:8080/', 'must not be a private or reserved address, got "fd00::1"'],
  [`http://example.com/${'a'.repeat(2048)}`, 'must have at most 2048 characters'],
];
for (const [url, reason] of BROKEN)
  test(`a refusal names what is wrong with the text of the url: ${reason}`, async () => {
    assert.equal(await refusalOf(url), `Cannot use this url: it ${reason}`);
  });

test('a refusal is the same for a name that is missing, private, mixed or silent', async () => {
  const reasons = ['missing', 'mixed', 'mixed6', 'metadata'].map((name) => refusalOf(`https://${name}.example.com/`));
  assert.deepEqual(
    new Set(await Promise.all(reasons)),
    new Set(['Cannot use this url: it does not resolve to a public address']),
  );
});

for (const name of ['mixed', 'mixed6', 'metadata'])
  test(`vet() refuses a name with a forbidden answer: ${name}`, async () => {
    const vetting = await guard.vet(`https://${name}.example.com/`);
    assert.equal(vetting.kind === 'forbidden' && vetting.cause, 'private answer');
  });

test('a name that does not resolve is unresolved at an attempt', async () => {
  assert.deepEqual(await guard.vet('https://missing.example.com/'), {
    kind: 'unresolved',
    reason: 'no such name',
    isOwnFault: false,
  });
});

test('a name server that cannot be asked is no fault of the name', async () => {
  const refuse = () => Promise.reject(Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }));
  const missing = () => Promise.reject(Object.assign(new Error('missing'), { code: 'ENOTFOUND' }));
  const failed = { kind: 'unresolved', reason: 'name resolution failed', isOwnFault: true };
  for (const resolve4 of [refuse, missing]) {
    const alone = createAddressGuard({ allowCidrs: [], resolver: { resolve4, resolve6: refuse } });
    assert.deepEqual(await alone.vet('https://public.example.com/'), failed);
  }
});

const allowed: [url: string, addresses: string[]][] = [
  ['https://public.example.com/hook?token=a%20b', ['93.184.215.14']],
  ['https://both.example.com./', ['93.184.215.14', '2606:2800:21f:cb07:6820:80da:af6b:8b2c']],
  ['http://8.8.8.8:8080/', ['8.8.8.8']],
  ['http://[2606:4700::1111]/', ['2606:4700::1111']],
];
for (const [url, addresses] of allowed)
  test(`checkUrl() allows ${url}`, async () => {
    assert.deepEqual((await guard.checkUrl(url)).addresses, addresses);
  });

test('an allowed range opens that range only', async () => {
  const local = createAddressGuard({ allowCidrs: ['127.0.0.0/8', '::1/128'], resolver });
  assert.equal((await local.vet('http://127.0.0.1:3000/')).kind, 'allowed');
  assert.equal((await local.vet('http://[::1]:3000/')).kind, 'allowed');
  assert.equal((await local.vet('http://10.0.0.1/')).kind, 'forbidden');
  assert.equal((await local.vet('http://2130706433/')).kind, 'forbidden');
  assert.equal((await local.vet('http://localhost:3000/')).kind, 'forbidden');
});

test('a range of mapped IPv4 addresses opens them in either notation', async () => {
  const local = createAddressGuard({ allowCidrs: ['::ffff:10.0.0.0/104'], resolver });
  assert.equal((await local.vet('http://10.0.0.1/')).kind, 'allowed');
  assert.equal((await local.vet('http://[::ffff:a00:1]/')).kind, 'allowed');
  assert.equal((await local.vet('http://192.168.0.1/')).kind, 'forbidden');
});

test('a name server that never answers is given up', async (context) => {
  context.mock.timers.enable({ apis: ['setTimeout'] });
  const silent: NameResolver = { resolve4: () => new Promise(() => {}), resolve6: () => new Promise(() => {}) };
  const vetting = createAddressGuard({ allowCidrs: [], resolver: silent }).vet('https://silent.example.com/');
  context.mock.timers.tick(3000);
  assert.deepEqual(await vetting, {
    kind: 'unresolved',
    reason: 'name resolution timeout',
    isOwnFault: false,
  });
});

test('an attempt does not wait for a slow answer about IPv6 once it has an address; a check of the url does', async (context) => {
  context.mock.timers.enable({ apis: ['setTimeout'] });
  const slow: NameResolver = { ...resolver, resolve6: () => new Promise(() => {}) };
  const patient = createAddressGuard({ allowCidrs: [], resolver: slow });
  const vetting = patient.vet('https://public.example.com/');
  let isChecked = false;
  const checked = patient.checkUrl('https://public.example.com/').then((target) => {
    isChecked = true;
    return target;
  });
  await new Promise(setImmediate);
  context.mock.timers.tick(50);
  const allowed = await vetting;
  assert.deepEqual(allowed.kind === 'allowed' && allowed.target.addresses, ['93.184.215.14']);
  assert.equal(isChecked, false);
  context.mock.timers.tick(2950);
  assert.deepEqual((await checked).addresses, ['93.184.215.14']);
});

test('a name with many addresses is a target if all of them are public, and the first 32 are kept', async () => {
  const many = Array.from({ length: 40 }, (_, last) => `93.184.215.${last}`);
  const large = answer({ 'many.example.com': many, 'almost.example.com': [...many, '10.0.0.1'] });
  const guarded = createAddressGuard({ allowCidrs: [], resolver: large });
  assert.deepEqual((await guarded.checkUrl('https://many.example.com/')).addresses, many.slice(0, 32));
  assert.equal((await guarded.vet('https://almost.example.com/')).kind, 'forbidden');
});

test('the operator sees which host was refused and why, and nothing of the path', async () => {
  const refusals: ExplainedRefusal[] = [];
  const guard = createAddressGuard({ allowCidrs: [], resolver, onRefused: (refusal) => refusals.push(refusal) });
  for (const url of [
    'http://127.0.0.1:9000/secret?token=1',
    'not a url',
    'https://mixed.example.com/',
    'https://no.example.com/',
  ])
    await assert.rejects(guard.checkUrl(url));
  await guard.checkUrl('http://8.8.8.8/');
  assert.deepEqual(
    refusals.map(({ host, cause }) => [host, cause]),
    [
      ['127.0.0.1:9000', 'private address'],
      ['', 'form'],
      ['mixed.example.com', 'private answer'],
      ['no.example.com', 'no answer'],
    ],
  );
});

const inside = answer({
  'db.corp': ['10.1.0.7'],
  jenkins: ['10.1.0.8'],
  'ci.default.svc.cluster.local': ['10.1.0.9'],
  'public.corp': ['93.184.215.14'],
  'half.corp': ['10.1.0.7', '93.184.215.14'],
  'other.corp': ['10.2.0.1'],
  'metadata.google.internal': ['169.254.169.254'],
  'jenkins.example.com': ['10.1.0.8'],
});
const NAMES: [host: string, allowHosts: string, isAllowed: boolean][] = [
  ['db.corp', '*.corp', true],
  ['DB.corp.', '*.corp', true],
  ['db.corp', '*.lan', false],
  ['db.corp', '', false],
  ['db.corp', 'db.corp', true],
  ['ci.default.svc.cluster.local', '*.local', true],
  ['jenkins', '*.corp', false],
  ['jenkins', 'jenkins', true],
  ['jenkins', '*', true],
  ['public.corp', '*.corp', false],
  ['half.corp', '*.corp', false],
  ['other.corp', '*.corp', false],
  ['missing.corp', '*.corp', false],
  ['metadata.google.internal', '*', false],
  ['localhost', '*', false],
  ['any.localhost', '*', false],
  ['jenkins.example.com', '', true],
];
for (const [host, allowHosts, isAllowed] of NAMES)
  test(`with 10.1.0.0/16 allowed and names "${allowHosts}", ${host} is ${isAllowed ? 'a target' : 'refused'}`, async () => {
    const patterns = allowHosts === '' ? [] : [allowHosts];
    const vetted = createAddressGuard({ allowCidrs: ['10.1.0.0/16'], allowHosts: patterns, resolver: inside });
    const { kind } = await vetted.vet(`http://${host}:8080/hook`);
    assert.equal(kind === 'allowed', isAllowed, kind);
    const closed = createAddressGuard({ allowCidrs: [], allowHosts: patterns, resolver: inside });
    assert.notEqual((await closed.vet(`http://${host}:8080/hook`)).kind, 'allowed');
  });

test('names of the hosts file resolve where ranges are allowed, and nowhere else', async (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-hosts-'));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  const hostsFile = join(folder, 'hosts');
  writeFileSync(
    hostsFile,
    '# of a container\n10.1.0.5\tCI.example.com ci # extra\n10.9.9.9 away.example.com\nnonsense\n',
  );
  const options = { allowHosts: ['ci'], resolver: answer({ 'away.example.com': ['10.1.0.6'] }), hostsFile };
  const opened = createAddressGuard({ ...options, allowCidrs: ['10.1.0.0/16'] });
  const addressesOf = async (host: string) => {
    const vetting = await opened.vet(`http://${host}/`);
    return vetting.kind === 'allowed' ? vetting.target.addresses : vetting.kind;
  };
  assert.deepEqual(await addressesOf('ci.example.com'), ['10.1.0.5']);
  assert.deepEqual(await addressesOf('ci'), ['10.1.0.5']);
  assert.equal(await addressesOf('away.example.com'), 'forbidden', 'the file comes before the name server');
  const closed = createAddressGuard({ ...options, allowCidrs: [] });
  assert.equal((await closed.vet('http://ci.example.com/')).kind, 'unresolved');
  writeFileSync(hostsFile, '10.1.0.55 ci.example.com\n');
  assert.deepEqual(await addressesOf('ci.example.com'), ['10.1.0.55']);
  rmSync(hostsFile);
  assert.equal(await addressesOf('ci.example.com'), 'unresolved');
});
