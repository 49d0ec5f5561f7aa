/**
 * Keeps the connections that wait for their next request: by origin, to use them again, and by owner, to close one when there are
 * too many. A tenant can name as many origins as it likes, so the owner with the most gives one up.
 */

/** The part of a connection that decides where it waits. */
interface Waiting {
  readonly origin: string;
  /** The owner of the delivery that it carried last. */
  readonly ownerId: string;
}

export interface IdleConnections<Connection extends Waiting> {
  add(connection: Connection): void;
  /** Does nothing when it does not wait. */
  delete(connection: Connection): void;
  /** The connection of the origin that has waited longest. */
  findOldest(origin: string): Connection | undefined;
  /** The connection that has waited longest of the owner that has most; undefined when none waits. */
  findExcess(): Connection | undefined;
  clear(): void;
}

export function createIdleConnections<Connection extends Waiting>(): IdleConnections<Connection> {
  const byOrigin: Groups<Connection> = new Map();
  const byOwner: Groups<Connection> = new Map();
  return {
    add: (connection) => {
      addTo(byOrigin, connection.origin, connection);
      addTo(byOwner, connection.ownerId, connection);
    },
    delete: (connection) => {
      deleteFrom(byOrigin, connection.origin, connection);
      deleteFrom(byOwner, connection.ownerId, connection);
    },
    findOldest: (origin) => firstOf(byOrigin.get(origin)),
    findExcess: () => firstOf(findLargest(byOwner.values())),
    clear: () => {
      byOrigin.clear();
      byOwner.clear();
    },
  };
}

/** Sets in the order in which their connections began to wait. */
type Groups<Connection> = Map<string, Set<Connection>>;

function addTo<Connection>(groups: Groups<Connection>, key: string, connection: Connection): void {
  const group = groups.get(key) ?? new Set();
  groups.set(key, group.add(connection));
}

function deleteFrom<Connection>(groups: Groups<Connection>, key: string, connection: Connection): void {
  const group = groups.get(key);
  if (group?.delete(connection) && group.size === 0) groups.delete(key);
}

function firstOf<Connection>(group: Iterable<Connection> = []): Connection | undefined {
  for (const connection of group) return connection;
  return undefined;
}

function findLargest<Connection>(groups: Iterable<ReadonlySet<Connection>>): ReadonlySet<Connection> | undefined {
  let largest: ReadonlySet<Connection> | undefined;
  for (const group of groups) if (group.size > (largest?.size ?? 0)) largest = group;
  return largest;
}
