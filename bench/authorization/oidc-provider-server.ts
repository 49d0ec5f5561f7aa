/** The peer: oidc-provider with its in-memory adapter (nothing is durable), rotating refresh tokens, introspection on. */
import type { AddressInfo } from 'node:net';
import Provider from 'oidc-provider';
import { serveParent } from './protocol.ts';

const clientId = 'bench';
const clientSecret = 'a-secret-of-forty-three-characters-like-ours';
const provider = new Provider('http://127.0.0.1', {
  clients: [
    {
      client_id: clientId,
      client_secret: clientSecret,
      redirect_uris: ['https://client.example/callback'],
      grant_types: ['authorization_code', 'refresh_token'],
      token_endpoint_auth_method: 'client_secret_post',
    },
  ],
  pkce: { required: () => false },
  rotateRefreshToken: true,
  issueRefreshToken: async () => true,
  scopes: ['openid', 'offline_access', 'all_user'],
  ttl: { AccessToken: 1_296_000, RefreshToken: 7_776_000, AuthorizationCode: 60, Grant: 7_776_000, IdToken: 3600 },
  features: { introspection: { enabled: true }, devInteractions: { enabled: false } },
  findAccount: (_context, id) => ({ accountId: id, claims: async () => ({ sub: id, name: 'Ada' }) }),
  jwks: { keys: [await createKey()] },
  cookies: { keys: ['bench'] },
});

async function createKey() {
  const { exportJWK, generateKeyPair } = await import('jose');
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  return { ...(await exportJWK(privateKey)), alg: 'RS256', use: 'sig' };
}

const client = await provider.Client.find(clientId);
if (client === undefined) throw new Error('The client is missing');
const accountId = 'ada';

async function createGrantId(): Promise<string> {
  const grant = new provider.Grant({ accountId, clientId });
  grant.addOIDCScope('openid offline_access all_user');
  return await grant.save();
}

const listener = provider.listen(0, '127.0.0.1');
await new Promise((resolve) => listener.once('listening', resolve));

serveParent({
  ready: {
    port: (listener.address() as AddressInfo).port,
    clientId,
    clientSecret,
    tokenPath: '/token',
    introspectPath: '/token/introspection',
    userPath: '/me',
    holdsFewTokens: true,
  },
  prepare: async (kind, count) => {
    const secrets: string[] = [];
    for (let i = 0; i < count; i++) {
      const common = { accountId, client, grantId: await createGrantId() };
      // Without openid, neither server computes an RS256 signature; userinfo needs it.
      const scope = kind === 'user' ? 'openid all_user' : 'all_user offline_access';
      const shared = { ...common, scope, gty: 'authorization_code' };
      if (kind === 'refresh')
        secrets.push(await new provider.RefreshToken({ ...shared, rotations: 0 } as never).save());
      else if (kind === 'exchange')
        secrets.push(
          await new provider.AuthorizationCode({
            ...shared,
            redirectUri: 'https://client.example/callback',
          } as never).save(),
        );
      else secrets.push(await new provider.AccessToken({ ...shared, gty: 'authorization_code' } as never).save());
    }
    return secrets;
  },
});
