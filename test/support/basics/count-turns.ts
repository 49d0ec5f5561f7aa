/** Counts the turns of the event loop until work is done. */
export async function countTurns(work: Promise<unknown>): Promise<number> {
  let turns = 0;
  let isDone = false;
  const count = (): void => {
    turns += 1;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  try {
    await work;
    return turns;
  } finally {
    isDone = true;
  }
}
