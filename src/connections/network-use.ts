/**
 * Counts the resources that the connections of one network take: an IPv4 address, an IPv6 /64, or the unix socket. Connections
 * cost an attacker nothing, addresses do, so scarce resources are divided among networks first.
 */
export interface NetworkUse {
  connections: number;
  /** The bytes that are reserved for gRPC messages larger than the first window of their stream. */
  reservedBytes: number;
  readonly site: SiteUse;
}

/** The connections of one customer (site): all networks of the same IPv6 /48 (RFC 6177), or one other network alone. */
interface SiteUse {
  connections: number;
}

export interface Load {
  readonly connections: number;
  /** The connections of all networks of its site. */
  readonly ofSite: number;
}

/** Positive if the first is larger. Between networks with equally many connections the site decides: a /48 has 65,536 networks. */
export function compareLoads(one: Load, other: Load): number {
  return one.connections - other.connections || one.ofSite - other.ofSite;
}

export function loadOf({ connections, site }: NetworkUse): Load {
  return { connections, ofSite: site.connections };
}

export class NetworkUses {
  readonly #uses = new Map<string, NetworkUse>();
  readonly #sites = new Map<string, SiteUse>();

  /** One more connection of the network. */
  enter(network: string): NetworkUse {
    const use = this.#uses.get(network) ?? this.#add(network);
    use.connections += 1;
    use.site.connections += 1;
    return use;
  }

  #add(network: string): NetworkUse {
    const name = siteOf(network);
    const site = this.#sites.get(name) ?? { connections: 0 };
    const use = { connections: 0, reservedBytes: 0, site };
    this.#sites.set(name, site);
    this.#uses.set(network, use);
    return use;
  }

  leave(network: string, use: NetworkUse): void {
    use.connections -= 1;
    use.site.connections -= 1;
    if (use.connections === 0) this.#uses.delete(network);
    if (use.site.connections === 0) this.#sites.delete(siteOf(network));
  }

  /** The load of the largest networks. */
  get largest(): Load {
    let largest: Load = { connections: 0, ofSite: 0 };
    for (const use of this.#uses.values()) {
      const load = loadOf(use);
      if (compareLoads(load, largest) > 0) largest = load;
    }
    return largest;
  }

  /** The load that the network would have with one more connection. */
  loadWithOneMore(network: string): Load {
    const connections = this.#uses.get(network)?.connections ?? 0;
    const ofSite = this.#sites.get(siteOf(network))?.connections ?? 0;
    return { connections: connections + 1, ofSite: ofSite + 1 };
  }

  /** Returns undefined for a network without a connection. */
  find(network: string): NetworkUse | undefined {
    return this.#uses.get(network);
  }
}

/** An IPv6 /64 is named by its four numbers, and its site by the first three of them. */
function siteOf(network: string): string {
  const end = network.lastIndexOf(':');
  return end < 0 ? network : network.slice(0, end);
}
