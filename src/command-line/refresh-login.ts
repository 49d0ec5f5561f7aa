/** Refreshes the access token of a login before it ends (RFC 6749 §6). */
import { Failure } from '../errors.ts';
import { refuseAnswer, refuseOtherService } from '../operations/call-service.ts';
import { askService } from './ask-service.ts';
import { findEndpoints } from './find-endpoints.ts';
import type { Login } from './logins.ts';

/** The client id of `trivet login`, registered in advance at every service. */
export const CLIENT_ID = 'trivet-cli';

export interface TokenAnswer {
  readonly access_token?: string;
  readonly refresh_token?: string;
  readonly expires_in?: number;
  readonly scope?: string;
  readonly error?: string;
  readonly error_description?: string;
}

/** Throws `unavailable` for a transient failure; a refusal is an answer with `error`. */
export async function postForm(url: string, fields: Readonly<Record<string, string>>): Promise<TokenAnswer> {
  const response = await askService(url, { method: 'POST', body: new URLSearchParams(fields) });
  try {
    const text = await response.text();
    return text === '' ? {} : (JSON.parse(text) as TokenAnswer);
  } catch (error) {
    throw refuseAnswer(url, error);
  }
}

export function toLogin(answer: TokenAnswer, nowMs: number): Login {
  return {
    token: answer.access_token ?? '',
    refreshToken: answer.refresh_token,
    expiresAtMs: answer.expires_in === undefined ? undefined : nowMs + answer.expires_in * 1000,
    scope: answer.scope,
  };
}

/** A token is refreshed this long before it expires, so that no call sends an expired one. */
const EARLY_MS = 60_000;

export function isEnding({ refreshToken, expiresAtMs = Infinity }: Login, nowMs: number): boolean {
  return refreshToken !== undefined && expiresAtMs - EARLY_MS <= nowMs;
}

export async function refreshLogin(url: string, login: Login, nowMs: number): Promise<Login> {
  const endpoints = await findEndpoints(url);
  if (endpoints === undefined) throw refuseOtherService(url);
  const answer = await postForm(endpoints.token, {
    grant_type: 'refresh_token',
    refresh_token: login.refreshToken ?? '',
    client_id: CLIENT_ID,
  });
  if (answer.access_token !== undefined) return { ...toLogin(answer, nowMs), user: login.user };
  if (answer.error === undefined) throw refuseOtherService(url);
  const reason = answer.error_description ?? answer.error;
  throw new Failure('unauthenticated', `The login at ${url} has ended: ${reason}. Sign in with: trivet login ${url}`);
}
