import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRandom, drawLogNormal } from '../../simulator/random-draws.ts';
import { createAdaptiveQuantiles, QUANTILE_LEVELS } from './conformal.ts';
import { createServerQuantiles } from './server-quantiles.ts';

const P90 = QUANTILE_LEVELS.indexOf(0.9);

/** Residuals of two servers, one scattered three times as widely; how many of each stayed below the predicted p90. */
function coverServers(): { readonly calm: number; readonly wild: number } {
  const slot = createAdaptiveQuantiles();
  const servers = createServerQuantiles();
  const random = createRandom(1);
  const below = [0, 0];
  const rounds = 4000;
  for (let i = 0; i < 2 * rounds; i++) {
    const server = i % 2;
    const residual = Math.log(drawLogNormal(random, 1, 1)) * (server === 0 ? 1 : 3);
    const predicted = QUANTILE_LEVELS.map((_, p) => (slot.quantiles()?.[p] ?? 1.3) + servers.correctionsOf(server)[p]!);
    if (residual <= predicted[P90]!) below[server]!++;
    slot.observe(residual, { quantiles: predicted });
    servers.observe(server, residual, predicted);
  }
  return { calm: below[0]! / rounds, wild: below[1]! / rounds };
}

test('each server keeps its coverage by itself, not only both together', () => {
  const { calm, wild } = coverServers();
  assert.ok(Math.abs(calm - 0.9) < 0.015, `calm ${calm}`);
  assert.ok(Math.abs(wild - 0.9) < 0.015, `wild ${wild}`);
});

test('a server without events, or unknown, has the quantiles of its slot', () => {
  const servers = createServerQuantiles();
  servers.observe(3, 5, [0, 1, 2, 3]);
  assert.ok(servers.correctionsOf(3)[P90]! > 0);
  assert.equal(servers.correctionsOf(4)[P90], 0);
  servers.observe(-1, 5, [0, 1, 2, 3]);
  assert.equal(servers.correctionsOf(-1)[P90], 0);
});

test('one event moves a correction little, and a forgotten server has none', () => {
  const servers = createServerQuantiles();
  servers.observe(0, 9, [0, 1, 2, 3]);
  assert.ok(servers.correctionsOf(0)[P90]! < 0.2);
  servers.forget(0);
  assert.equal(servers.correctionsOf(0)[P90], 0);
});

test('corrections are kept over a restart', () => {
  const before = createServerQuantiles();
  for (let i = 0; i < 20; i++) before.observe(2, 9, [0, 1, 2, 3]);
  const after = createServerQuantiles();
  after.restoreServer(7, before.saveServer(2)!);
  for (const p of QUANTILE_LEVELS.keys()) assert.equal(after.correctionsOf(7)[p], before.correctionsOf(2)[p]);
  assert.equal(before.saveServer(1), undefined);
});

test('times that are known hundreds of events late do not make corrections oscillate', () => {
  const delay = 300;
  const slot = createAdaptiveQuantiles();
  const random = createRandom(2);
  const pending: { residual: number; predicted: number[]; after: number }[] = [];
  let [below, judged] = [0, 0];
  const shares: number[] = [];
  for (let i = 0; i < 9000; i++) {
    const residual = Math.log(drawLogNormal(random, 1, 1));
    const predicted = QUANTILE_LEVELS.map((_, p) => slot.quantiles()?.[p] ?? 1.3);
    pending.push({ residual, predicted, after: slot.count });
    below += residual <= predicted[P90]! ? 1 : 0;
    if (++judged === 300) {
      shares.push(below / judged);
      [below, judged] = [0, 0];
    }
    if (i < delay) continue;
    const late = pending.shift()!;
    slot.observe(late.residual, { quantiles: late.predicted }, slot.count - late.after);
  }
  for (const share of shares.slice(4)) assert.ok(share > 0.82 && share < 0.97, shares.join(' '));
});

test('a miss moves a server less, the more of its events came while the request was under way', () => {
  const servers = createServerQuantiles();
  servers.observe(0, 5, [0, 1, 2, 3]);
  servers.observe(1, 5, [0, 1, 2, 3], 9);
  assert.ok(Math.abs(servers.correctionsOf(0)[P90]! / servers.correctionsOf(1)[P90]! - 10 ** 1.5) < 1e-9);
  assert.deepEqual([servers.countOf(0), servers.countOf(1), servers.countOf(2), servers.countOf(-1)], [1, 1, 0, 0]);
});
