/** Reads the client's address from the context of a request. */
interface ClientContext {
  get(key: 'clientAddress'): string | undefined;
}

/** The client's address according to the configured trusted proxies; `-` if it is unknown. */
export function clientAddress(c: ClientContext): string {
  return c.get('clientAddress') ?? '-';
}
