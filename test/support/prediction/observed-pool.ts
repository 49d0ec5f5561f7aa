import { fillMetrics } from '../../../src/prediction/schema/input-fields.ts';
import type { Observation } from '../../../src/prediction/schema/observation.ts';
import {
  appendObservation,
  createObservationTable,
  type ObservationTable,
} from '../../../src/prediction/schema/observation-table.ts';
import { createRandom } from '../../../src/prediction/simulator/random-draws.ts';

export interface PoolOptions {
  readonly rows: number;
  readonly seed?: number;
  /** One speed a server: 2 is twice as slow. */
  readonly servers?: readonly number[];
  readonly podType?: string;
}

/** Observations of a made-up pool whose times follow a rule that is not in the model's terms, with 5 % of noise. */
export function observePool({ rows, seed = 1, servers = [1], podType = '' }: PoolOptions): Observation[] {
  const random = createRandom(seed);
  return Array.from({ length: rows }, (_, i) => {
    const server = Math.floor(random() * servers.length);
    const speed = servers[server]!;
    const length = 50 + Math.floor(4000 * random() ** 2);
    const running = Math.floor(40 * random());
    const waiting = running > 30 ? Math.floor(20 * random()) : 0;
    const prefix = random() < 0.3 ? random() : 0;
    const noise = () => Math.exp(0.05 * (random() + random() + random() - 1.5) * 2);
    const stall = waiting > 0 ? 400 + 120 * waiting : 0;
    return {
      targetModel: 'm',
      input: {
        podType,
        ...fillMetrics(() => 0),
        inputTokenLength: length,
        prefixCacheScore: prefix,
        numRequestWaiting: waiting,
        numRequestRunning: running,
        kvCacheUsage: running / 45,
        inflightTokens: running * 300,
        hbmUtilization: 0.5,
        aiCoreUtilization: running / 60,
        bandwidthUtilization: 0.3,
        serverIp: `10.0.0.${server}`,
      },
      atMs: 1_700_000_000_000 + i * 500,
      ttftMs: speed * noise() * (30 + 0.2 * (1 - prefix) * length * (1 + running / 25) + stall),
      tpotMs: speed * noise() * (12 + 0.3 * running + (running > 24 ? 9 : 0)),
    };
  });
}

export function tabulate(observations: readonly Observation[]): ObservationTable {
  const table = createObservationTable();
  for (const observation of observations) appendObservation(table, observation);
  return table;
}
