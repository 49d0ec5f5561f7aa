/** Finds the OAuth endpoints of a service, which may have another address than the service itself (RFC 8414). */
import { readJsonAnswer } from '../operations/call-service.ts';
import { askService } from './ask-service.ts';
import { readServiceUrl } from './service-url.ts';

export interface Endpoints {
  readonly token: string;
  readonly revocation: string;
  /** Undefined for a service without the device flow. */
  readonly device: string | undefined;
}

/** Returns undefined at an address without metadata. Throws `invalid` for an endpoint to which no token may be sent. */
export async function findEndpoints(url: string): Promise<Endpoints | undefined> {
  const response = await askService(`${url}/.well-known/oauth-authorization-server`);
  if (!response.ok) return undefined;
  const metadata = (await readJsonAnswer(url, response)) as Readonly<Record<string, string | undefined>>;
  const read = (name: string) => (metadata[name] === undefined ? undefined : readServiceUrl(metadata[name]));
  return {
    token: read('token_endpoint') ?? `${url}/oauth/token`,
    revocation: read('revocation_endpoint') ?? `${url}/oauth/revoke`,
    device: read('device_authorization_endpoint'),
  };
}
