/** Limits how many tests of webhooks are under way at once: of one person, and of all in this process. */

/** Tests ignore the limits of scheduled deliveries, so that a person sees at once whether the receiver works. */
const MAX_TESTS_OF_PERSON = 4;
const MAX_TESTS = 32;

export interface TestPlaces {
  /** Takes a place, which the returned function gives back; undefined when all are taken. */
  take(person: string): (() => void) | undefined;
}

export function createTestPlaces(): TestPlaces {
  const counts = new Map<string, number>();
  let total = 0;
  const change = (person: string, by: 1 | -1): void => {
    total += by;
    const count = (counts.get(person) ?? 0) + by;
    if (count === 0) counts.delete(person);
    else counts.set(person, count);
  };
  return {
    take: (person) => {
      if (total >= MAX_TESTS || (counts.get(person) ?? 0) >= MAX_TESTS_OF_PERSON) return undefined;
      change(person, 1);
      return () => change(person, -1);
    },
  };
}
