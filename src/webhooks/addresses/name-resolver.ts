/** Asks name servers for the addresses of a name, and repeats a query that Node's resolver gave up early. */
import { Resolver } from 'node:dns/promises';

/** The part of `node:dns/promises` that is used; it must not read the hosts file. */
export interface NameResolver {
  resolve4(name: string): Promise<string[]>;
  resolve6(name: string): Promise<string[]>;
}

interface NameResolverOptions {
  /** A query without an answer by then fails. */
  readonly timeoutMs: number;
  /** Addresses of name servers; those of the system unless given. */
  readonly servers?: readonly string[];
}

/**
 * Node's resolver (c-ares from 1.32 on) measures how long a name server takes, and waits five times that for an answer (in
 * practice at least 1 s, the tick of Node's timer). So after quick answers from a cache, a name whose own servers are slow would
 * never be found, and a lost packet would be a failure. A query that was given up in this way is repeated once by a new resolver
 * without measurements, which waits for the whole time.
 */
export function createNameResolver(options: NameResolverOptions): NameResolver {
  const shared = createResolver(options);
  const ask = async (method: keyof NameResolver, name: string): Promise<string[]> => {
    try {
      return await shared[method](name);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ETIMEOUT') throw error;
      return await createResolver(options)[method](name);
    }
  };
  return { resolve4: (name) => ask('resolve4', name), resolve6: (name) => ask('resolve6', name) };
}

function createResolver({ timeoutMs, servers }: NameResolverOptions): Resolver {
  const resolver = new Resolver({ timeout: timeoutMs, tries: 1 });
  if (servers !== undefined) resolver.setServers(servers);
  return resolver;
}
