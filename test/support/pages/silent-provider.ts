/** An OpenID provider whose person is always signed in, so that it never asks; a test sets when the person signed in there. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import type { UpstreamConfig } from '../../../src/authorization/sign-in/upstream.ts';

const CLIENT_ID = 'trivet';

export interface SilentProvider {
  readonly config: UpstreamConfig;
  /** The claim `auth_time`; undefined: it says nothing. */
  authTimeMs: number | undefined;
}

export async function startSilentProvider(t: TestContext): Promise<SilentProvider> {
  const { privateKey, publicKey } = await generateKeyPair('RS256');
  const jwks = { keys: [await exportJWK(publicKey)] };
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => void server.close());
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const config = {
    issuer,
    name: 'Company',
    clientId: CLIENT_ID,
    clientSecret: 'x',
    scope: 'openid',
    signUp: 'open',
  } as const;
  const provider: SilentProvider = { config, authTimeMs: undefined };
  const metadata = {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    jwks_uri: `${issuer}/jwks`,
    response_types_supported: ['code'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['RS256'],
  };
  /** The code is the nonce. */
  const redeem = async (request: IncomingMessage) => {
    const nonce = new URLSearchParams(await text(request)).get('code');
    const authTime = provider.authTimeMs && { auth_time: Math.floor(provider.authTimeMs / 1000) };
    const token = new SignJWT({ nonce, preferred_username: 'grace', ...authTime })
      .setProtectedHeader({ alg: 'RS256' })
      .setIssuer(issuer)
      .setAudience(CLIENT_ID)
      .setSubject('grace')
      .setIssuedAt()
      .setExpirationTime('1m');
    return { access_token: 'x', token_type: 'bearer', id_token: await token.sign(privateKey) };
  };
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const { pathname, searchParams } = new URL(request.url ?? '', issuer);
    if (pathname === '/authorize') {
      const query = { code: searchParams.get('nonce') ?? '', state: searchParams.get('state') ?? '' };
      const location = `${searchParams.get('redirect_uri')}?${new URLSearchParams(query).toString()}`;
      return response.writeHead(302, { location }).end();
    }
    const body = pathname === '/token' ? await redeem(request) : pathname === '/jwks' ? jwks : metadata;
    return response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  };
  server.on('request', (request, response) => void answer(request, response));
  return provider;
}
