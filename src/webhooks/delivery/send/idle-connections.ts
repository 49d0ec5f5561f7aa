/**
 * Keeps idle connections by origin, to use them again, and by owner, to close one when there are too many. A tenant can use any number
 * of origins, so a connection of the owner with the most is closed.
 */

/** The fields of a connection by which it is kept. */
interface Waiting {
  readonly origin: string;
  /** The owner of its last delivery. */
  readonly ownerId: string;
}

export interface IdleConnections<Connection extends Waiting> {
  add(connection: Connection): void;
  /** Does nothing if the connection is not idle. */
  delete(connection: Connection): void;
  /** The connection to the origin that has been idle longest. */
  findOldest(origin: string): Connection | undefined;
  /** Of the owner with the most idle connections, the one that has been idle longest; undefined if no connection is idle. */
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

/** Each set is in the order in which its connections became idle. */
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
