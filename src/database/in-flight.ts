/** Counts running work, so that a resource is closed only when no work uses it. */
export interface InFlight {
  track<Result>(work: () => Promise<Result>): Promise<Result>;
  /** Resolves as soon as no work is running. */
  settle(): Promise<void>;
}

export function createInFlight(): InFlight {
  let count = 0;
  let idle = Promise.withResolvers<void>();
  idle.resolve();
  return {
    track: async (work) => {
      if (count === 0) idle = Promise.withResolvers<void>();
      count += 1;
      try {
        return await work();
      } finally {
        count -= 1;
        if (count === 0) idle.resolve();
      }
    },
    settle: () => idle.promise,
  };
}
