/** Work under one name is done one after the other, in the order in which it came. */
export interface Turns {
  isTaken(name: string): boolean;
  take<Result>(name: string, work: () => Promise<Result>): Promise<Result>;
}

export function createTurns(): Turns {
  const lastByName = new Map<string, Promise<void>>();
  return {
    isTaken: (name) => lastByName.has(name),
    take: async (name, work) => {
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
