/** Runs work of the same name one after the other, in the order in which it came. */
export interface SerialByName {
  isBusy(name: string): boolean;
  run<Result>(name: string, work: () => Promise<Result>): Promise<Result>;
}

export function createSerialByName(): SerialByName {
  const lastByName = new Map<string, Promise<void>>();
  return {
    isBusy: (name) => lastByName.has(name),
    run: async (name, work) => {
      const before = lastByName.get(name);
      const own = Promise.withResolvers<void>();
      lastByName.set(name, own.promise);
      await before;
      try {
        return await work();
      } finally {
        if (lastByName.get(name) === own.promise) lastByName.delete(name);
        own.resolve();
      }
    },
  };
}
