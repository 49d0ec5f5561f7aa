/** Independent OAuth clients, unchanged, against the running program, with a person in a real browser between them. */
import assert from 'node:assert/strict';
import type { AddressInfo } from 'node:net';
import { after, before, suite, test } from 'node:test';
import express from 'express';
import * as oauth from 'oauth4webapi';
import * as openid from 'openid-client';
import passport from 'passport';
import OAuth2Strategy from 'passport-oauth2';
import { AuthorizationCode } from 'simple-oauth2';
import { type OAuthJourney, startOAuthJourney } from '../support/authorization/oauth-journey.ts';
import { findReasonToSkipPages } from '../support/pages/browser.ts';

suite('OAuth clients', { skip: findReasonToSkipPages() }, () => {
  let journey: OAuthJourney;

  before(async () => {
    journey = await startOAuthJourney();
  });

  after(async () => {
    await journey?.[Symbol.asyncDispose]();
  });

  test('a client of GitCode sends parameters in the query and no redirect_uri, and refreshes without a client', async () => {
    const { client_id, client_secret } = await journey.register();
    const query = {
      client_id,
      redirect_uri: journey.callback.url,
      response_type: 'code',
      scope: 'all_user all_hook',
      state: 'xyz',
    };
    const back = await journey.approveAndReturn(
      `${journey.program.httpUrl}/oauth/authorize?${new URLSearchParams(query).toString()}`,
    );
    assert.equal(back.searchParams.get('state'), 'xyz');
    const code = back.searchParams.get('code') ?? '';
    const post = async (fields: Record<string, string>) => {
      const response = await fetch(`${journey.program.httpUrl}/oauth/token?${new URLSearchParams(fields).toString()}`, {
        method: 'POST',
      });
      assert.equal(response.status, 200);
      return (await response.json()) as Record<string, string | number>;
    };
    const tokens = await post({ grant_type: 'authorization_code', code, client_id, client_secret });
    assert.deepEqual([tokens.expires_in, tokens.scope], [1_296_000, 'all_user all_hook']);
    const renewed = await post({ grant_type: 'refresh_token', refresh_token: String(tokens.refresh_token) });
    const user = await fetch(`${journey.program.httpUrl}/api/v5/user`, {
      headers: { Authorization: `Bearer ${renewed.access_token}` },
    });
    assert.equal(((await user.json()) as { login: string }).login, 'ada');
  });

  test('oauth4webapi discovers, checks iss, exchanges with PKCE, reads the identity token, refreshes, introspects and revokes', async () => {
    const { client_id, client_secret } = await journey.register();
    const insecure = { [oauth.allowInsecureRequests]: true };
    const issuer = new URL(journey.program.httpUrl);
    const discovered = await oauth.discoveryRequest(issuer, { algorithm: 'oauth2', ...insecure });
    const server = await oauth.processDiscoveryResponse(issuer, discovered);
    const client: oauth.Client = { client_id };
    const authenticate = oauth.ClientSecretBasic(client_secret);
    const verifier = oauth.generateRandomCodeVerifier();
    const state = oauth.generateRandomState();
    const nonce = oauth.generateRandomNonce();
    const url = new URL(server.authorization_endpoint ?? '');
    for (const [name, value] of Object.entries({
      client_id,
      redirect_uri: journey.callback.url,
      response_type: 'code',
      scope: 'openid all_user',
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      state,
      nonce,
    }))
      url.searchParams.set(name, value);
    const back = await journey.approveAndReturn(url.href);
    const parameters = oauth.validateAuthResponse(server, client, back, state);
    const exchanged = await oauth.authorizationCodeGrantRequest(
      server,
      client,
      authenticate,
      parameters,
      journey.callback.url,
      verifier,
      insecure,
    );
    const tokens = await oauth.processAuthorizationCodeResponse(server, client, exchanged, {
      expectedNonce: nonce,
      requireIdToken: true,
    });
    await oauth.validateApplicationLevelSignature(server, exchanged, insecure);
    const { sub } = oauth.getValidatedIdTokenClaims(tokens) ?? { sub: '' };
    const userinfo = await oauth.userInfoRequest(server, client, tokens.access_token, insecure);
    const profile = await oauth.processUserInfoResponse(server, client, sub, userinfo);
    assert.equal(profile.preferred_username, 'ada');
    const renewal = await oauth.refreshTokenGrantRequest(
      server,
      client,
      authenticate,
      tokens.refresh_token ?? '',
      insecure,
    );
    const renewed = await oauth.processRefreshTokenResponse(server, client, renewal);
    const asked = await oauth.introspectionRequest(server, client, authenticate, renewed.access_token, insecure);
    assert.equal((await oauth.processIntrospectionResponse(server, client, asked)).active, true);
    const revoked = await oauth.revocationRequest(server, client, authenticate, renewed.refresh_token ?? '', insecure);
    await oauth.processRevocationResponse(revoked);
    const again = await oauth.introspectionRequest(server, client, authenticate, renewed.access_token, insecure);
    assert.equal((await oauth.processIntrospectionResponse(server, client, again)).active, false);
  });

  test('openid-client is a public client with PKCE, and a device', async () => {
    const { client_id } = await journey.register(
      '--public',
      '--grant',
      'authorization_code',
      'refresh_token',
      'device_code',
    );
    const config = await openid.discovery(new URL(journey.program.httpUrl), client_id, undefined, openid.None(), {
      execute: [openid.allowInsecureRequests],
    });
    const verifier = openid.randomPKCECodeVerifier();
    const url = openid.buildAuthorizationUrl(config, {
      redirect_uri: journey.callback.url,
      scope: 'openid all_user',
      code_challenge: await openid.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      state: 'abc',
    });
    const back = await journey.approveAndReturn(url.href);
    const tokens = await openid.authorizationCodeGrant(config, back, {
      pkceCodeVerifier: verifier,
      expectedState: 'abc',
    });
    assert.equal(tokens.token_type, 'bearer');
    const renewed = await openid.refreshTokenGrant(config, tokens.refresh_token ?? '');
    const info = await openid.fetchUserInfo(config, renewed.access_token, tokens.claims()?.sub ?? '');
    assert.equal(info.email, 'ada@example.com');

    const device = await openid.initiateDeviceAuthorization(config, { scope: 'all_hook' });
    const polling = openid.pollDeviceAuthorizationGrant(config, device);
    await journey.page.goto(device.verification_uri_complete ?? '');
    await journey.page.locator('form:has(input[name="user_code"]) button').click();
    await journey.page.locator('button[name="decision"][value="allow"]').click();
    assert.equal((await polling).scope, 'all_hook');
  });

  test('openid-client lets an application act for itself', async () => {
    const { client_id, client_secret } = await journey.register(
      '--grant',
      'client_credentials',
      '--redirect-uri',
      'https://x.example/',
    );
    const config = await openid.discovery(new URL(journey.program.httpUrl), client_id, client_secret, undefined, {
      execute: [openid.allowInsecureRequests],
    });
    const tokens = await openid.clientCredentialsGrant(config, { scope: 'all_user' });
    assert.equal(tokens.expires_in, 1_296_000);
  });

  test('simple-oauth2 exchanges, refreshes and revokes with the secret in the body', async () => {
    const { client_id, client_secret } = await journey.register();
    const client = new AuthorizationCode({
      client: { id: client_id, secret: client_secret },
      auth: { tokenHost: journey.program.httpUrl, revokePath: '/oauth/revoke' },
      options: { authorizationMethod: 'body' },
    });
    const url = client.authorizeURL({ redirect_uri: journey.callback.url, scope: 'all_user', state: 's' });
    const back = await journey.approveAndReturn(url);
    const token = await client.getToken({
      code: back.searchParams.get('code') ?? '',
      redirect_uri: journey.callback.url,
    });
    assert.equal(token.expired(), false);
    const renewed = await token.refresh();
    assert.notEqual(renewed.token.access_token, token.token.access_token);
    await renewed.revokeAll();
    await assert.rejects(renewed.refresh());
  });

  test('passport-oauth2 signs the user of a web application in', async () => {
    const app = express();
    const listener = app.listen(0, '127.0.0.1');
    await new Promise((resolve) => listener.once('listening', resolve));
    const origin = `http://127.0.0.1:${(listener.address() as AddressInfo).port}`;
    const { client_id, client_secret } = await journey.register('--redirect-uri', `${origin}/back`);
    const strategy = new OAuth2Strategy(
      {
        authorizationURL: `${journey.program.httpUrl}/oauth/authorize`,
        tokenURL: `${journey.program.httpUrl}/oauth/token`,
        clientID: client_id,
        clientSecret: client_secret,
        callbackURL: `${origin}/back`,
        scope: ['all_user'],
      },
      (accessToken: string, _refresh: string, _profile: unknown, done: OAuth2Strategy.VerifyCallback) => {
        fetch(`${journey.program.httpUrl}/api/v5/user`, { headers: { Authorization: `Bearer ${accessToken}` } })
          .then((response) => response.json())
          .then((user) => done(null, user as Express.User), done);
      },
    );
    passport.use(strategy);
    app.get('/login', passport.authenticate('oauth2', { session: false }));
    app.get('/back', passport.authenticate('oauth2', { session: false }), (request, response) => {
      response.send(`<h1>Hello ${(request.user as { login: string }).login}</h1>`);
    });
    try {
      await journey.approve(`${origin}/login`);
      await journey.page.waitForURL(`${origin}/back?**`);
      assert.equal(await journey.page.textContent('h1'), 'Hello ada');
    } finally {
      listener.closeAllConnections();
      listener.close();
    }
  });
});
