/** Parses the servers of `trivet simulate`: their number, their speed, and when the speed changes. */
import { existsSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { InvalidArgumentError } from 'commander';
import { durationIn } from '../../command-line/time-option.ts';
import { Failure } from '../../errors.ts';
import type { SimulatedServer } from '../simulator/server.ts';
import { createTableTimer } from '../simulator/step-table.ts';
import { createRooflineTimer, GPUS, type StepTimer, scaleTimer } from '../simulator/step-time.ts';

export interface PoolServer {
  /** Its kind and its position in the list: `medium-1`. */
  readonly name: string;
  readonly timer: StepTimer;
  /** Undefined for a table of step times, which does not have it. */
  readonly kvCapacityTokens: number | undefined;
}

/** From `atMs` on, every step of the server takes `factor` times as long as it did at first. */
export interface Slowdown {
  readonly server: string;
  readonly factor: number;
  readonly atMs: number;
}

/** Parses a pool such as `large:1,medium:2`. */
export function parsePool(text: string): PoolServer[] {
  const kinds = text.split(',').flatMap((part) => {
    const [name = '', count = '1'] = part.split(':');
    if (!/^[1-9]\d{0,3}$/.test(count)) throw new InvalidArgumentError(`"${part}" must have a count as in large:2.`);
    const server = readServer(name);
    return Array.from({ length: Number(count) }, () => server);
  });
  return kinds.map((server, index) => ({ ...server, name: `${server.name}-${index}` }));
}

const parseSlowdownTime = durationIn({ bareUnit: 's', minimum: 0, maximum: 31_536_000 });

/** Parses `medium-1:2@5m,…`: after 5 minutes, medium-1 takes twice as long. A number without a unit is seconds. */
export function parseSlowdowns(text: string): Slowdown[] {
  return text.split(',').map((part) => {
    const [, server = '', factor, after = ''] = /^(.+):([\d.]+)@([\w.]+)$/.exec(part) ?? [];
    if (!(Number(factor) > 0 && Number.isFinite(Number(factor))))
      throw new InvalidArgumentError(`"${part}" must be a server, a factor above 0 and a time, as in large-0:2@5m.`);
    return { server, factor: Number(factor), atMs: 1000 * parseSlowdownTime(after) };
  });
}

/** Returns the changes for a simulation; `servers` are in the order of the pool. */
export function planSlowdowns(
  pool: readonly PoolServer[],
  servers: readonly SimulatedServer[],
  slowdowns: readonly Slowdown[],
): { readonly atMs: number; readonly apply: () => void }[] {
  return slowdowns.map(({ server, factor, atMs }) => {
    const index = pool.findIndex(({ name }) => name === server);
    if (index === -1) {
      const known = pool.map(({ name }) => name).join(', ');
      throw new Failure('invalid', `Cannot slow a server down: it must be one of ${known}, got "${server}"`);
    }
    return { atMs, apply: () => servers[index]!.setTimer(scaleTimer(pool[index]!.timer, factor)) };
  });
}

function readServer(name: string): PoolServer {
  const gpu = GPUS.find((candidate) => candidate.name === name);
  if (gpu !== undefined) return { name, timer: createRooflineTimer(gpu), kvCapacityTokens: gpu.kvCapacityTokens };
  if (existsSync(join(name, 'dense.csv')))
    return { name: basename(name), timer: readTables(name), kvCapacityTokens: undefined };
  const known = GPUS.map((candidate) => candidate.name).join(', ');
  throw new InvalidArgumentError(
    `"${name}" must be one of ${known}, or a folder with dense.csv, attention.csv and per_sequence.csv.`,
  );
}

/** The layers of the models for which such tables are measured: 8 billion parameters, as in Llama 3. */
const TABLE_LAYERS = 32;

function readTables(folder: string): StepTimer {
  const read = (file: string) => {
    const path = join(folder, file);
    return { path, text: readFileSync(path, 'utf8') };
  };
  return createTableTimer(
    { dense: read('dense.csv'), attention: read('attention.csv'), perSequence: read('per_sequence.csv') },
    TABLE_LAYERS,
  );
}
