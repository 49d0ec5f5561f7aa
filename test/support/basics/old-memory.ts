/** Measures what a piece of work leaves in the old generation of the heap, where only a collection of the whole heap finds garbage. */
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as (options?: { readonly type: 'minor' }) => void;

/** Bytes that `run` adds: its second round, since the first one compiles and fills caches. */
export async function measureOldBytes(run: () => void | Promise<void>): Promise<number> {
  await run();
  // Moves all live objects to the old generation, so that later garbage can be kept alive by them.
  collect();
  const before = readOldBytes();
  await run();
  // An object is old once it has survived two collections.
  for (let round = 0; round < 3; round++) collect({ type: 'minor' });
  return readOldBytes() - before;
}

function readOldBytes(): number {
  const spaces = getHeapSpaceStatistics().filter(({ space_name }) =>
    ['old_space', 'large_object_space'].includes(space_name),
  );
  return spaces.reduce((bytes, space) => bytes + space.space_used_size, 0);
}
