import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConnectionPlaces, type PlacedConnection } from './connection-places.ts';
import type { NetworkUse } from './network-use.ts';

interface Connection extends PlacedConnection {
  readonly name: string;
  changedMs: number;
  waits: boolean;
}

const NOW_MS = 10_000;

function waitFor(connection: Connection | undefined, ms: number): void {
  connection!.waits = true;
  connection!.changedMs = NOW_MS - ms;
}

/** Connections enter idle since a time, or busy. */
function openPlaces(maxConnections: number) {
  const places = new ConnectionPlaces<Connection>(maxConnections, () => NOW_MS);
  const evicted: string[] = [];
  let looks = 0;
  let asks = 0;
  const enter = (name: string, networkName: string, idleSince: number | undefined): Connection | undefined => {
    const network: NetworkUse | undefined = places.enter(networkName);
    if (network === undefined) return undefined;
    const connection: Connection = {
      name,
      get network() {
        looks += 1;
        return network;
      },
      changedMs: idleSince ?? NOW_MS,
      isIdle: idleSince !== undefined,
      waits: false,
      get waitsForClient() {
        asks += 1;
        return this.waits;
      },
      evict: () => evicted.push(name),
    };
    places.add(connection, networkName);
    return connection;
  };
  return { places, evicted, enter, readLooks: () => looks, readAsks: () => asks };
}

test('the connection that is idle for longest leaves, as it is now and not as it was at the last search', () => {
  const { evicted, enter } = openPlaces(4);
  const [a, b] = [1, 2, 3, 4].map((since) => enter(String(since), 'one', since));
  enter('5', 'one', 5);
  assert.deepEqual(evicted, ['1']);
  // It was found as the next one to replace, and has had a call since.
  b!.changedMs = 6;
  enter('7', 'one', 7);
  enter('8', 'one', 8);
  assert.deepEqual(evicted, ['1', '3', '4']);
  a!.changedMs = 0;
  enter('9', 'one', 9);
  assert.deepEqual(evicted, ['1', '3', '4', '5']);
});

test('a network may not take the place of one that has fewer, nor become the largest by a place that is in use', () => {
  const { evicted, enter } = openPlaces(3);
  enter('other', 'b', 1);
  enter('busy', 'a', undefined);
  const waiting = enter('waiting', 'a', undefined);
  assert.equal(enter('refused', 'a', undefined), undefined);
  waitFor(waiting, 1000);
  enter('next', 'a', undefined);
  assert.deepEqual(evicted, ['waiting']);
  assert.equal(enter('of b', 'b', undefined), undefined);
  enter('of c', 'c', undefined);
  assert.deepEqual(evicted, ['waiting', 'next']);
});

test('of two networks with as many connections, each replaces its own', () => {
  const { evicted, enter } = openPlaces(4);
  for (const [name, network, since] of [
    ['victim 1', 'victim', 1],
    ['victim 2', 'victim', 2],
    ['attacker 3', 'attacker', 3],
    ['attacker 4', 'attacker', 4],
  ] as const)
    enter(name, network, since);
  enter('attacker 5', 'attacker', 5);
  assert.deepEqual(evicted, ['attacker 3']);
  enter('victim 6', 'victim', 6);
  enter('attacker 7', 'attacker', 7);
  assert.deepEqual(evicted, ['attacker 3', 'victim 1', 'attacker 4']);
  enter('of a third', 'third', 8);
  assert.deepEqual(evicted, ['attacker 3', 'victim 1', 'attacker 4', 'victim 2']);
});

test('of networks with as many connections, the idle ones of the largest IPv6 /48 give way', () => {
  const { evicted, enter } = openPlaces(4);
  enter('idle for longest', '8193:3512:1:1', 1);
  enter('busy', '8193:3512:2:1', undefined);
  for (const part of [2, 3]) enter(`crowd ${part}`, `8193:3512:2:${part}`, part);
  enter('crowd 4', '8193:3512:2:4', 4);
  assert.deepEqual(evicted, ['crowd 2']);
  enter('of another', '10.0.0.1', 5);
  assert.deepEqual(evicted, ['crowd 2', 'crowd 3']);
});

test('of networks with as many connections, the idle ones of a site that has become the largest give way', () => {
  const { evicted, enter } = openPlaces(70);
  for (let since = 1; since <= 70; since++) enter(String(since), `10.0.0.${since}`, since);
  for (let part = 1; part <= 10; part++) enter(`crowd ${part}`, `8193:3512:2:${part}`, 70 + part);
  assert.deepEqual(evicted, ['1', '2', ...Array.from({ length: 8 }, (_, index) => `crowd ${index + 1}`)]);
});

test('of networks with as many connections, those of the largest IPv6 /48 that wait give way', () => {
  const { evicted, enter } = openPlaces(3);
  waitFor(enter('waits for longest', '8193:3512:1:1', undefined), 9000);
  for (const part of [1, 2]) waitFor(enter(`crowd ${part}`, `8193:3512:2:${part}`, undefined), 1000);
  enter('crowd 3', '8193:3512:2:3', undefined);
  assert.deepEqual(evicted, ['crowd 1']);
});

test('the connection that has waited for its client for longest leaves, and none that has waited for less than a second', () => {
  const { evicted, enter } = openPlaces(3);
  const [, second, third] = ['1', '2', '3'].map((name) => enter(name, `10.0.0.${name}`, undefined));
  waitFor(second, 999);
  assert.equal(enter('refused', '10.0.0.4', undefined), undefined);
  waitFor(second, 1000);
  waitFor(third, 1001);
  enter('4', '10.0.0.4', undefined);
  enter('5', '10.0.0.5', undefined);
  assert.deepEqual(evicted, ['3', '2']);
});

test('a connection that waits leaves before one that became idle within the last second, and after one that did before', () => {
  const { evicted, enter } = openPlaces(4);
  enter('just idle', '10.0.0.1', NOW_MS - 999);
  for (const part of [2, 3]) waitFor(enter(`waiting ${part}`, `10.0.0.${part}`, undefined), 1000 * part);
  enter('long idle', '10.0.0.4', NOW_MS - 1000);
  for (const part of [5, 6, 7]) enter(`next ${part}`, `10.0.0.${part}`, NOW_MS);
  assert.deepEqual(evicted, ['long idle', 'waiting 3', 'waiting 2']);
  enter('next 8', '10.0.0.8', NOW_MS);
  assert.equal(evicted.at(-1), 'just idle');
});

test('new connections of a crowded IPv6 /48 leave before one of another network that waits', () => {
  const { evicted, enter } = openPlaces(3);
  waitFor(enter('waiting', '10.0.0.1', undefined), 5000);
  for (const part of [1, 2, 3, 4]) enter(`crowd ${part}`, `8193:3512:2:${part}`, NOW_MS - 10 + part);
  assert.deepEqual(evicted, ['crowd 1', 'crowd 2']);
});

test('busy connections of the largest IPv6 /48 do not give way while one of another network is idle or waits', () => {
  const { evicted, enter } = openPlaces(4);
  for (const part of [1, 2]) enter(`busy ${part}`, `8193:3512:2:${part}`, undefined);
  for (const part of [1, 2]) enter(`idle ${part}`, `10.0.0.${part}`, part);
  waitFor(enter('stranger', '10.0.0.3', undefined), 1000);
  assert.deepEqual(evicted, ['idle 1']);
  enter('busy 3', '8193:3512:2:3', undefined);
  assert.deepEqual(evicted, ['idle 1', 'idle 2']);
  enter('busy 4', '8193:3512:2:4', undefined);
  assert.deepEqual(evicted, ['idle 1', 'idle 2', 'stranger']);
});

test('a /48 whose networks have a busy connection each does not keep others out', () => {
  const { evicted, enter } = openPlaces(3);
  for (const part of [1, 2, 3]) enter(`crowd ${part}`, `8193:3512:2:${part}`, undefined);
  assert.equal(enter('crowd 4', '8193:3512:2:4', undefined), undefined);
  enter('other', '8193:3512:1:1', undefined);
  assert.deepEqual(evicted, ['crowd 3']);
  enter('next', '10.0.0.1', undefined);
  assert.deepEqual(evicted, ['crowd 3', 'crowd 2']);
  assert.equal(enter('last', '10.0.0.2', undefined), undefined);
});

test('a thousand new connections of one network do not search all others each time', () => {
  const { evicted, enter, readLooks } = openPlaces(1000);
  for (let since = 0; since < 1000; since++) enter(String(since), 'one', since);
  const before = readLooks();
  for (let since = 1000; since < 2000; since++) enter(String(since), 'one', since);
  assert.equal(evicted.length, 1000);
  assert.equal(evicted.at(-1), '999');
  assert.ok(readLooks() - before < 30_000, String(readLooks() - before));
});

test('only a connection that would leave is asked whether it waits: the answer may cost a look at a thousand calls', () => {
  const { evicted, enter, readAsks } = openPlaces(1000);
  for (let index = 0; index < 1000; index++)
    waitFor(enter(String(index), `10.0.${index >> 8}.${index & 255}`, undefined), index % 2 === 0 ? 5000 - index : 500);
  for (let index = 0; index < 10; index++) enter(`new ${index}`, `10.1.0.${index}`, undefined);
  assert.equal(evicted.at(-1), '18');
  assert.equal(readAsks(), 10);
});
