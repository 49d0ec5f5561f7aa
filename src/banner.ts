/** Writes the text that the program prints once it is up: where it listens, and where to create the first administrator. */

/** A port that an area has beside the common one. */
export interface NamedServer {
  readonly name: string;
  readonly url: string;
}

interface Addresses {
  readonly http: string;
  readonly grpc: string;
  readonly own: readonly NamedServer[];
  /** Undefined once there is an administrator. */
  readonly setupLink: string | undefined;
}

/** The link goes to standard output, not to the log: a person must see it, and logs are stored. */
export function writeBanner({ http, grpc, own, setupLink }: Addresses): string {
  const servers = [{ name: 'HTTP', url: http }, { name: 'gRPC', url: grpc }, ...own];
  const banner = ['Trivet is ready', ...servers.map(({ name, url }) => `  ${name}  ${url}`)].join('\n');
  if (setupLink === undefined) return banner;
  return `${banner}\n\nNo administrator exists yet. Create the first one within a day:\n  ${setupLink}`;
}
