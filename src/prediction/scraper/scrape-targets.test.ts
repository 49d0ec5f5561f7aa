/** Where the list of servers comes from, and which addresses it leads to. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { createLog } from '../../telemetry/log.ts';
import { realWorld } from '../../world.ts';
import { createHostAddresses, type LookUp } from './host-addresses.ts';
import { isScrapeAddress } from './scrape-addresses.ts';
import { createTargetList } from './scrape-targets.ts';

const silent = createLog('silent');
const RESOLVE_EVERY_MS = 30_000;

/** A list whose clock and resolver the test holds. */
function openList(source: string, lookUp: LookUp, log = silent) {
  const clock = { nowMs: 0 };
  const addresses = createHostAddresses({ world: { monotonicMs: () => clock.nowMs }, log, lookUp });
  const list = createTargetList({ source, addresses, log });
  const readPlaces = async () => {
    await list.read();
    await turn();
    return (await list.read()).map(({ url, names }) => [url?.href, names[0]]);
  };
  return { clock, list, readPlaces };
}

test('each address of a host is a server, and the host is looked up again after 30 s', async () => {
  let found = ['10.0.0.2', '10.0.0.1'];
  const { clock, readPlaces } = openList('http://vllm.test:8000/metrics', async () => found);
  const places = (...addresses: string[]) =>
    addresses.map((address) => [`http://${address}:8000/metrics`, `${address}:8000`]);
  assert.deepEqual(await readPlaces(), places('10.0.0.1', '10.0.0.2'));
  found = ['10.0.0.3', '10.0.0.1'];
  clock.nowMs += RESOLVE_EVERY_MS - 1;
  assert.deepEqual(await readPlaces(), places('10.0.0.1', '10.0.0.2'), 'not due');
  clock.nowMs += 1;
  assert.deepEqual(await readPlaces(), places('10.0.0.1', '10.0.0.3'));
});

test('servers stay while the resolver fails', async () => {
  let isUp = true;
  const { clock, readPlaces } = openList('http://vllm.test/metrics', async () => {
    if (!isUp) throw new Error('no answer');
    return ['10.0.0.1'];
  });
  const before = await readPlaces();
  isUp = false;
  clock.nowMs += RESOLVE_EVERY_MS;
  assert.deepEqual(await readPlaces(), before);
});

test('the same addresses in another order are the same list', async () => {
  let found = ['10.0.0.1', '10.0.0.2'];
  const { clock, list, readPlaces } = openList('http://vllm.test/metrics', async () => found);
  await readPlaces();
  const before = await list.read();
  found = found.toReversed();
  clock.nowMs += RESOLVE_EVERY_MS;
  await readPlaces();
  assert.equal(await list.read(), before);
});

const PODS = ['10.0.0.1', '10.0.0.2'];
const lists: [title: string, source: string, lookUp: LookUp, servers: readonly (readonly string[])[]][] = [
  ['a line twice', 'http://10.0.0.1/m,http://10.0.0.1/m', async () => [], [['10.0.0.1:80', '10.0.0.1']]],
  [
    'a line twice whose host is not resolved',
    'http://vllm.test/m,http://vllm.test/m',
    async () => [],
    [['vllm.test:80', 'vllm.test']],
  ],
  [
    'a headless service and one of its pods',
    'http://vllm.test/m,http://10.0.0.2/m',
    async () => PODS,
    PODS.map((pod) => [`${pod}:80`, pod]),
  ],
  [
    'two hosts with one address',
    'http://a.test/m,http://b.test/m',
    async () => ['10.0.0.1'],
    [
      ['a.test:80', 'a.test'],
      ['b.test:80', 'b.test'],
    ],
  ],
  [
    'two hosts with one address, and this address',
    'http://a.test/m,http://10.0.0.1/m,http://b.test/m,http://a.test/m',
    async () => ['10.0.0.1'],
    [
      ['a.test:80', 'a.test'],
      ['10.0.0.1:80', '10.0.0.1'],
      ['b.test:80', 'b.test'],
    ],
  ],
  [
    'two hosts with the same addresses',
    'http://a.test/m,http://b.test/m',
    async () => PODS,
    PODS.flatMap((pod) => [[`http://${pod}/m (a.test)`], [`http://${pod}/m (b.test)`]]),
  ],
  [
    'a server with a name and without',
    'http://10.0.0.1/m,gpu=http://10.0.0.1/m,cpu=http://10.0.0.1/m',
    async () => [],
    [['gpu', '10.0.0.1:80', '10.0.0.1'], ['cpu']],
  ],
  [
    'a name that is the address of another server',
    '10.0.0.2=http://10.0.0.1/m,http://10.0.0.2/m',
    async () => [],
    [['10.0.0.2'], ['10.0.0.2:80']],
  ],
];
for (const [title, source, lookUp, servers] of lists)
  test(`a list with ${title} leads to each server once, under its names`, async () => {
    const { list, readPlaces } = openList(source, lookUp);
    await readPlaces();
    assert.deepEqual(
      (await list.read()).map(({ names }) => names),
      servers,
    );
  });

test('a server that no name tells from another is scraped under its URL, and logged once', async () => {
  const lines: string[] = [];
  const logged = createLog('warn', {
    write: (line) => void lines.push((JSON.parse(line) as { server: string }).server),
  });
  const places = ['http://10.0.0.1/a', 'http://10.0.0.1/b'];
  const { readPlaces } = openList(places.join(), async () => [], logged);
  assert.deepEqual(
    await readPlaces(),
    places.map((place) => [place, place]),
  );
  assert.deepEqual(lines, places);
});

test('addresses that must not be scraped are left out of what a name resolves to', async () => {
  const { readPlaces } = openList('http://vllm.test:8000/metrics', async () => ['169.254.169.254', '10.0.0.1', '::']);
  assert.deepEqual(await readPlaces(), [['http://10.0.0.1:8000/metrics', '10.0.0.1:8000']]);
  const { readPlaces: readRefused } = openList('http://evil.test:8000/metrics', async () => ['169.254.169.254']);
  assert.deepEqual(await readRefused(), [[undefined, 'evil.test:8000']]);
});

const addresses: [address: string, isAllowed: boolean][] = [
  ['10.0.0.1', true],
  ['127.0.0.1', true],
  ['100.64.0.9', true],
  ['240.10.0.7', true],
  ['198.18.0.7', true],
  ['203.0.114.7', true],
  ['fd12::1', true],
  ['::1', true],
  ['2606:4700::1', true],
  ['169.254.169.254', false],
  ['::ffff:169.254.169.254', false],
  ['fe80::1', false],
  ['fd00:ec2::254', false],
  ['fd00:ec2::23', false],
  ['fd00:42::42', false],
  ['fd20:ce::254', false],
  ['100.100.100.200', false],
  ['0.0.0.0', false],
  ['::', false],
  ['224.0.0.1', false],
  ['255.255.255.255', false],
  ['64:ff9b::a9fe:a9fe', false],
  ['localhost', false],
];
for (const [address, isAllowed] of addresses)
  test(`isScrapeAddress() ${isAllowed ? 'allows' : 'refuses'} ${address}`, () =>
    assert.equal(isScrapeAddress(address), isAllowed));

test('a list that stays wrong is logged once', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-test-'));
  try {
    const file = join(folder, 'servers');
    writeFileSync(file, '# no server yet\n');
    const lines: string[] = [];
    const log = createLog('error', { write: (line) => lines.push(line) });
    const list = createTargetList({ source: file, addresses: createHostAddresses({ world: realWorld, log }), log });
    await list.read();
    writeFileSync(file, 'ftp://nowhere\n');
    for (let turn = 0; turn < 3; turn++) await list.read();
    assert.equal(lines.length, 1);
    writeFileSync(file, 'ftp://elsewhere\n');
    for (let turn = 0; turn < 3; turn++) await list.read();
    assert.equal(lines.length, 2, 'another reason');
  } finally {
    rmSync(folder, { recursive: true });
  }
});
