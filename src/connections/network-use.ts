/**
 * Counts what the connections of one network take together: an IPv4 address, an IPv6 /64, or the unix socket. Connections cost
 * an attacker nothing, addresses do, so what is scarce is divided among networks first.
 */
export interface NetworkUse {
  connections: number;
  /** The bytes that are reserved for gRPC messages larger than the first window of their stream. */
  reservedBytes: number;
}

export class NetworkUses {
  readonly #uses = new Map<string, NetworkUse>();

  /** One more connection of the network. */
  enter(network: string): NetworkUse {
    let use = this.#uses.get(network);
    if (use === undefined) {
      use = { connections: 0, reservedBytes: 0 };
      this.#uses.set(network, use);
    }
    use.connections += 1;
    return use;
  }

  leave(network: string, use: NetworkUse): void {
    use.connections -= 1;
    if (use.connections === 0) this.#uses.delete(network);
  }

  /** The number of connections of the largest network. */
  get most(): number {
    let most = 0;
    for (const { connections } of this.#uses.values()) most = Math.max(most, connections);
    return most;
  }

  /** Returns undefined for a network without a connection. */
  find(network: string): NetworkUse | undefined {
    return this.#uses.get(network);
  }
}
