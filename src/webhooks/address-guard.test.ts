import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FORBIDDEN_TARGETS } from '../../test/support/forbidden-targets.ts';
import { isFailure } from '../errors.ts';
import { createAddressGuard, type NameResolver } from './address-guard.ts';

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
    await guard.checkTarget(url);
    return 'allowed';
  } catch (error) {
    assert.ok(isFailure(error) && error.code === 'invalid');
    return error.message;
  }
}

for (const [why, url] of FORBIDDEN_TARGETS)
  test(`checkTarget() refuses ${why}: ${JSON.stringify(url)}`, async () => {
    assert.equal(
      await refusalOf(url),
      'Cannot use this url: it must be an http or https address on the public internet',
    );
    assert.equal((await guard.vet(url)).kind, 'refused');
  });

for (const name of ['mixed', 'mixed6', 'metadata'])
  test(`vet() refuses a name with a forbidden answer: ${name}`, async () => {
    assert.deepEqual(await guard.vet(`https://${name}.example.com/`), { kind: 'refused' });
  });

test('a name that does not resolve is unresolved at an attempt, and refused in the same words as all', async () => {
  assert.deepEqual(await guard.vet('https://missing.example.com/'), { kind: 'unresolved', reason: 'no such name' });
  assert.equal(await refusalOf('https://missing.example.com/'), await refusalOf('http://127.0.0.1/'));
});

const allowed: [url: string, addresses: string[]][] = [
  ['https://public.example.com/hook?token=a%20b', ['93.184.215.14']],
  ['https://both.example.com./', ['93.184.215.14', '2606:2800:21f:cb07:6820:80da:af6b:8b2c']],
  ['http://8.8.8.8:8080/', ['8.8.8.8']],
  ['http://[2606:4700::1111]/', ['2606:4700::1111']],
];
for (const [url, addresses] of allowed)
  test(`checkTarget() allows ${url}`, async () => {
    assert.deepEqual((await guard.checkTarget(url)).addresses, addresses);
  });

test('an allowed range opens that range only', async () => {
  const local = createAddressGuard({ allowCidrs: ['127.0.0.0/8', '::1/128'], resolver });
  assert.equal((await local.vet('http://127.0.0.1:3000/')).kind, 'allowed');
  assert.equal((await local.vet('http://[::1]:3000/')).kind, 'allowed');
  assert.equal((await local.vet('http://10.0.0.1/')).kind, 'refused');
  assert.equal((await local.vet('http://2130706433/')).kind, 'refused');
  assert.equal((await local.vet('http://localhost:3000/')).kind, 'refused');
});

test('a name server that never answers is given up', async (context) => {
  context.mock.timers.enable({ apis: ['setTimeout'] });
  const silent: NameResolver = { resolve4: () => new Promise(() => {}), resolve6: () => new Promise(() => {}) };
  const vetting = createAddressGuard({ allowCidrs: [], resolver: silent }).vet('https://silent.example.com/');
  context.mock.timers.tick(3000);
  assert.deepEqual(await vetting, { kind: 'unresolved', reason: 'name resolution timeout' });
});

test('whoever runs the service hears which host was refused, and nothing of the path', async () => {
  const hosts: string[] = [];
  const guard = createAddressGuard({ allowCidrs: [], onRefused: (host) => hosts.push(host) });
  await assert.rejects(guard.checkTarget('http://127.0.0.1:9000/secret?token=1'));
  await assert.rejects(guard.checkTarget('not a url'));
  await guard.checkTarget('http://8.8.8.8/');
  assert.deepEqual(hosts, ['127.0.0.1:9000', '']);
});
