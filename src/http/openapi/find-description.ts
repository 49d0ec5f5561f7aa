import type { Place } from './create-example.ts';

/** The word of a field: by its owner first, then its parent, then its name alone. */
export type FindWord<T> = (place: Place) => T | undefined;

export function createDescriptionFinder<T>(tables: readonly Readonly<Record<string, T>>[]): FindWord<T> {
  const table: Readonly<Record<string, T>> = Object.assign({}, ...tables);
  return ({ owner, parent, name }) => table[`${owner}.${name}`] ?? table[`${parent}.${name}`] ?? table[name];
}
