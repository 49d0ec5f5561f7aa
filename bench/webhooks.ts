/**
 * Measures how fast deliveries are sent, on SQLite and PostgreSQL, compared with pg-boss (on the same PostgreSQL) and BullMQ (on
 * Redis), which use the same sender. PostgreSQL and Redis come from the system's packages and are started here, PostgreSQL with fsync
 * at each commit. Redis appends to its file with `everysec`, as BullMQ advises: it answers before a job is on the disk, and a power
 * cut may lose the jobs of a second.
 *
 * `node bench/webhooks.ts [--json] [--run drain,slow,steady,backlog]
 * [--only trivet-postgres,trivet-sqlite,pg-boss,bullmq] [--count 10000] [--pending 1000000] [--seconds 20]`
 *
 * `node bench/webhooks.ts --steady 500 [--only trivet-sqlite] [--seconds 20] [--processes 1] [--before FOLDER] [--floor]` measures the real
 * program instead: that many events a second over HTTP, each with one delivery. With `--before`, the program of another checkout takes
 * turns with it, with `--floor` also a service that does the minimum with an event.
 */
import { cpus, release } from 'node:os';
import { formatTable } from '../src/command-line/output.ts';
import { readBenchFlags } from './support/bench-flags.ts';
import { round } from './webhooks/arrivals.ts';
import { measureFrontDoors } from './webhooks/front-door.ts';
import type { TargetPlace } from './webhooks/front-door-targets.ts';
import { measureDrain, measureSteady } from './webhooks/measure.ts';
import { closePlaces, ENGINES, type EngineTitle, withPlace } from './webhooks/places.ts';

const { values: flags } = readBenchFlags({
  options: {
    json: { type: 'boolean', default: false },
    run: { type: 'string', default: 'drain,slow,steady,backlog' },
    only: { type: 'string', default: ENGINES.join(',') },
    count: { type: 'string', default: '10000' },
    pending: { type: 'string', default: '1000000' },
    seconds: { type: 'string', default: '20' },
    steady: { type: 'string' },
    processes: { type: 'string', default: '1' },
    before: { type: 'string' },
    floor: { type: 'boolean', default: false },
  },
});
const count = Number(flags.count);
const pending = Number(flags.pending);
const seconds = Number(flags.seconds);
const perSecond = Number(flags.steady);
const processes = Number(flags.processes);

type Figures = Readonly<Record<string, number>>;

interface Run {
  readonly title: string;
  /** Needs the commit time of each delivery, which the peers do not report. */
  readonly isOursAlone?: true;
  readonly measure: (engine: EngineTitle) => Promise<Figures>;
}

const RUNS: Readonly<Record<string, Run>> = {
  drain: {
    title: `drain ${count}`,
    measure: async (engine) => {
      const { seconds: took, ...figures } = await withPlace(engine, (place) => measureDrain(place, count, 0));
      return { seconds: round(took), perSecond: Math.round((count - figures.missing) / took), ...figures };
    },
  },
  slow: {
    title: 'slow endpoint',
    measure: async (engine) => {
      const alone = await withPlace(engine, (place) => measureDrain(place, 4000, 0));
      const beside = await withPlace(engine, (place) => measureDrain(place, 4000, 400));
      return {
        aloneSeconds: round(alone.seconds),
        besideSeconds: round(beside.seconds),
        ratio: round(beside.seconds / alone.seconds),
        missing: alone.missing + beside.missing,
      };
    },
  },
  steady: {
    title: 'steady 500/s',
    isOursAlone: true,
    measure: async (engine) => ({
      ...(await withPlace(engine, (place) => measureSteady(place, { perSecond: 500, seconds, pending: 0 }))),
    }),
  },
  backlog: {
    title: `backlog ${pending}, 200/s`,
    isOursAlone: true,
    measure: async (engine) => ({
      ...(await withPlace(engine, (place) => measureSteady(place, { perSecond: 200, seconds, pending }))),
    }),
  },
};

type Result = Readonly<{ run: string; engine: string }> & Figures;

function choose<T extends string>(list: string, allowed: readonly T[], flag: string): T[] {
  return list.split(',').map((word) => {
    if (allowed.includes(word as T)) return word as T;
    throw new Error(`Cannot measure: --${flag} must be of ${allowed.join(', ')}, got "${word}"`);
  });
}

async function measureAll(): Promise<Result[]> {
  const engines = choose(flags.only, ENGINES, 'only');
  if (flags.steady !== undefined) return await measurePrograms(engines);
  const results: Result[] = [];
  for (const name of choose(flags.run, Object.keys(RUNS), 'run')) {
    const { title, isOursAlone, measure } = RUNS[name]!;
    for (const engine of engines) {
      if (isOursAlone && !engine.startsWith('trivet')) continue;
      process.stderr.write(`${title}: ${engine}\n`);
      results.push({ run: title, engine, ...(await measure(engine)) } as Result);
    }
  }
  return results;
}

async function measurePrograms(engines: readonly EngineTitle[]): Promise<Result[]> {
  const run = `front door, ${perSecond}/s`;
  const places: [name: string, place: TargetPlace][] = [['', { folder: process.cwd() }]];
  if (flags.before !== undefined) places.unshift([', before', { folder: flags.before }]);
  if (flags.floor) places.push([', floor', 'floor']);
  const results: Result[] = [];
  for (const engine of engines.filter((one) => one.startsWith('trivet'))) {
    process.stderr.write(`${run}: ${engine}\n`);
    const options = { perSecond, seconds, processes };
    const figures = await measureFrontDoors(
      engine,
      options,
      places.map(([, place]) => place),
    );
    for (const [index, one] of figures.entries())
      results.push({ run, engine: `${engine}${places[index]![0]}`, ...one } as unknown as Result);
  }
  return results;
}

const results = await measureAll();
await closePlaces();
const machine = `${cpus()[0]?.model ?? 'unknown'}, ${cpus().length} cores, Linux ${release()}, Node ${process.version}`;
const date = new Date().toISOString();
if (flags.json) process.stdout.write(`${JSON.stringify({ machine, date, results })}\n`);
else {
  process.stdout.write(`${machine}, ${date}\n`);
  for (const group of Map.groupBy(results, (result) => result.run).values()) {
    const headings = Object.keys(group[0]!);
    const rows = group.map((result) => headings.map((heading) => result[heading]));
    process.stdout.write(`\n${formatTable(headings, rows)}\n`);
  }
}
process.exit(0);
