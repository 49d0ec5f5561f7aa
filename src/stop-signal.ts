/** Waits for the signal that stops a program, and treats repeats within a second as one signal. */

const SIGNALS = ['SIGTERM', 'SIGINT'] as const;

/**
 * Copies of a signal arrive within milliseconds of each other: Ctrl-C and systemd signal every process of the group, and
 * the launcher (`bin/trivet.js`), which is one of them, sends the signal on.
 */
const COPY_MS = 1000;

/** Resolves with the first signal. A signal more than a second later ends the process at once, with exit code 1. */
export function waitForStopSignal(): Promise<NodeJS.Signals> {
  const { promise, resolve } = Promise.withResolvers<NodeJS.Signals>();
  let firstMs: number | undefined;
  const take = (signal: NodeJS.Signals): void => {
    const nowMs = performance.now();
    firstMs ??= nowMs;
    resolve(signal);
    if (nowMs - firstMs > COPY_MS) process.exit(1);
  };
  // For the rest of the process: a signal without a listener would end it in the middle of its stop.
  for (const signal of SIGNALS) process.on(signal, take);
  return promise;
}
