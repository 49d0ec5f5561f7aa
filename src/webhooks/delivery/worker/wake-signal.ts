/** Ends the wait of a loop; a wake that comes before the wait is not lost. */
export interface WakeSignal {
  wake(): void;
  /** Forgets earlier wakes, whose work is about to be done. */
  clear(): void;
  /** Resolves at the next wake or after `maxMs`, with whether it was woken. */
  wait(maxMs: number): Promise<boolean>;
}

export function createWakeSignal(): WakeSignal {
  let isAwake = false;
  let endWait: ((isWoken: boolean) => void) | undefined;
  return {
    wake: () => {
      isAwake = true;
      endWait?.(true);
    },
    clear: () => {
      isAwake = false;
    },
    wait: async (maxMs) => {
      if (isAwake) return true;
      const { promise, resolve } = Promise.withResolvers<boolean>();
      endWait = resolve;
      const timer = setTimeout(resolve, maxMs, false);
      try {
        return await promise;
      } finally {
        clearTimeout(timer);
        endWait = undefined;
      }
    },
  };
}
