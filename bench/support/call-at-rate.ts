/** Calls at a fixed rate, and passes the time at which each call was due, so that a pause of the caller or the server counts as waiting. */

export interface Rate {
  readonly perSecond: number;
  readonly count: number;
}

/** `call` must not wait for its answer. Times are those of `performance.now()`. A late call does not delay the others. */
export async function callAtRate(
  { perSecond, count }: Rate,
  call: (dueMs: number, index: number) => void,
): Promise<void> {
  const startMs = performance.now();
  const dueMsOf = (index: number) => startMs + (index * 1000) / perSecond;
  for (let index = 0; index < count; ) {
    // Those that are due by now, and no more: answers are read in between.
    const nowMs = performance.now();
    for (; index < count && dueMsOf(index) <= nowMs; index += 1) call(dueMsOf(index), index);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}
