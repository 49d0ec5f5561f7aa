/** A context has this of the client, in every environment that extends `HttpEnv`. */
interface ClientContext {
  get(key: 'clientAddress'): string | undefined;
}

/** The client's address by the configured trusted proxies; `-` when it is unknown. */
export function clientAddress(c: ClientContext): string {
  return c.get('clientAddress') ?? '-';
}
