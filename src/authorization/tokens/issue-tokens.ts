/** Makes a pair of access and refresh token with their lifetimes, and the JSON response with them. */
import { hash } from 'node:crypto';
import type { World } from '../../world.ts';
import { createSecret, hashSecret } from '../accounts/secret-text.ts';
import type { ProtocolDependencies } from './protocol-dependencies.ts';
import type { NewToken } from './token-store.ts';

export interface TokenPair {
  readonly accessToken: string;
  readonly refreshToken: string;
}

/** GitCode's token object, and `token_type` of RFC 6749 §5.1. */
export interface TokenAnswer {
  readonly access_token: string;
  readonly token_type: 'bearer';
  readonly expires_in: number;
  readonly refresh_token?: string;
  readonly scope: string;
  readonly created_at: string;
  readonly id_token?: string;
}

const DAY_MS = 86_400_000;

export function createTokenPair(world: World): TokenPair {
  return { accessToken: createSecret('access', world), refreshToken: createSecret('refresh', world) };
}

export function toNewAccess({ settings }: ProtocolDependencies, accessToken: string, nowMs: number): NewToken {
  return { hash: hashSecret(accessToken), expiresAtMs: nowMs + settings.accessTokenSeconds * 1000 };
}

export function toNewRefresh({ settings }: ProtocolDependencies, refreshToken: string, nowMs: number): NewToken {
  return { hash: hashSecret(refreshToken), expiresAtMs: nowMs + settings.refreshIdleDays * DAY_MS };
}

export function computeFamilyEnd({ settings }: ProtocolDependencies, nowMs: number): number {
  return nowMs + settings.refreshMaxDays * DAY_MS;
}

export interface IssuedTokens {
  readonly accessToken: string;
  readonly refreshToken?: string | undefined;
  readonly scope: string;
  readonly issuedAtMs: number;
  readonly expiresAtMs: number;
  readonly idToken?: string | undefined;
}

export function formatTokenAnswer(tokens: IssuedTokens): TokenAnswer {
  return {
    access_token: tokens.accessToken,
    token_type: 'bearer',
    expires_in: Math.round((tokens.expiresAtMs - tokens.issuedAtMs) / 1000),
    ...(tokens.refreshToken === undefined ? {} : { refresh_token: tokens.refreshToken }),
    scope: tokens.scope,
    created_at: new Date(tokens.issuedAtMs).toISOString(),
    ...(tokens.idToken === undefined ? {} : { id_token: tokens.idToken }),
  };
}

const SEED_BYTES = 32;

export function createSuccessorSeed(world: World): Uint8Array {
  return world.randomBytes(SEED_BYTES);
}

/**
 * Derives the pair that follows a refresh token. It is the same each time, so a client that lost the response and presents the
 * old token again gets the same pair, which the store does not have to keep. Both inputs are 256 random bits: the old token
 * reveals nothing about the pair without the seed, which never leaves the store, and the seed nothing without the old token.
 */
export function deriveSuccessor(oldToken: string, seed: Uint8Array): TokenPair {
  const input = `${Buffer.from(seed).toString('hex')} ${oldToken}`;
  return {
    accessToken: createSecret('access', { randomBytes: createStream(`trivet successor access ${input}`) }),
    refreshToken: createSecret('refresh', { randomBytes: createStream(`trivet successor refresh ${input}`) }),
  };
}

/** Generates bytes by SHA-512 in counter mode. One digest is nearly always enough for a token. */
function createStream(input: string): World['randomBytes'] {
  let counter = 0;
  return (size) => {
    counter += 1;
    return hash('sha512', `${input} ${counter}`, 'buffer').subarray(0, size);
  };
}
