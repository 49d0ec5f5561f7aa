/** Limits how many manual attempts are under way at once: for each hook or person, and in this process. */

export interface LimitedPlaces<Owner> {
  /** Takes a place, which the returned function frees; undefined if all are taken. */
  take(owner: Owner): (() => void) | undefined;
}

export interface PlaceLimits {
  readonly ofOwner: number;
  readonly ofAll: number;
}

export function createLimitedPlaces<Owner>({ ofOwner, ofAll }: PlaceLimits): LimitedPlaces<Owner> {
  const counts = new Map<Owner, number>();
  let total = 0;
  const change = (owner: Owner, by: 1 | -1): void => {
    total += by;
    const count = (counts.get(owner) ?? 0) + by;
    if (count === 0) counts.delete(owner);
    else counts.set(owner, count);
  };
  return {
    take: (owner) => {
      if (total >= ofAll || (counts.get(owner) ?? 0) >= ofOwner) return undefined;
      change(owner, 1);
      return () => change(owner, -1);
    },
  };
}
