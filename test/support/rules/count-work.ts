import { type Profiler, Session } from 'node:inspector/promises';
import { setFlagsFromString } from 'node:v8';
import { settle } from './hostile-input.ts';

// Turns compilers off, since optimized code does not count calls of inlined functions.
for (const compiler of ['opt', 'maglev', 'sparkplug']) setFlagsFromString(`--no-${compiler}`);

/**
 * Counts how often JavaScript runs in `work`, ours and that of dependencies: for each function, the count of its most frequent block.
 * V8 counts blocks for coverage, and the counts do not depend on the load of the machine. Code inside V8 and Node is not counted.
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
