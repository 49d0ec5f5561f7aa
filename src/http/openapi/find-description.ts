/** Finds the description and example of a field of the OpenAPI document by its place. */

/** The place of a schema in the document. */
export interface Place {
  /** Component or operation that the schema belongs to. */
  readonly owner: string;
  /** Property that holds the schema. */
  readonly name: string;
  readonly parent: string;
}

/** Looks a field up: by its owner first, then its parent, then its name alone. */
export type FindWord<T> = (place: Place) => T | undefined;

export function createDescriptionFinder<T>(tables: readonly Readonly<Record<string, T>>[]): FindWord<T> {
  const table: Readonly<Record<string, T>> = Object.assign({}, ...tables);
  return ({ owner, parent, name }) => {
    const key = [`${owner}.${name}`, `${parent}.${name}`, name].find((one) => Object.hasOwn(table, one));
    return key === undefined ? undefined : table[key];
  };
}
