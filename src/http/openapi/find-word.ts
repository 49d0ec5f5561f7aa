import type { Place } from './create-example.ts';

/** The word of a field: by its owner first, then its parent, then its name alone. */
export type FindWord<T> = (place: Place) => T | undefined;

export function createWordFinder<T>(tables: readonly Readonly<Record<string, T>>[]): FindWord<T> {
  const words: Readonly<Record<string, T>> = Object.assign({}, ...tables);
  return ({ owner, parent, name }) => words[`${owner}.${name}`] ?? words[`${parent}.${name}`] ?? words[name];
}
