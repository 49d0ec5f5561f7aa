import { type Profiler, Session } from 'node:inspector/promises';
import { setFlagsFromString } from 'node:v8';
import { settle } from './hostile-input.ts';

// Optimized code does not count the calls of functions that it has inlined.
for (const compiler of ['opt', 'maglev', 'sparkplug']) setFlagsFromString(`--no-${compiler}`);

/**
 * How often JavaScript runs in `work`, ours and of dependencies: for each function, how often its block ran that ran most.
 * V8 counts that for coverage, and it is the same each time, whatever else the machine does. What runs inside V8 and Node
 * is not counted.
 */
export async function countWork(work: () => unknown): Promise<number> {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  try {
    await settle(work);
    const { result } = await session.post('Profiler.takePreciseCoverage');
    return sum(result.filter(({ url }) => url.startsWith('file:')).flatMap(countFunctions));
  } finally {
    await session.post('Profiler.stopPreciseCoverage');
    session.disconnect();
  }
}

/** Blocks that ran equally often may be one or several, so they are not added up. */
function countFunctions({ functions }: Profiler.ScriptCoverage): number[] {
  return functions.map(({ ranges }) => Math.max(...ranges.map(({ count }) => count)));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
