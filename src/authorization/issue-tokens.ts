/** Makes tokens, words the answer that carries them, and seals a pair for the one who held the token before it. */
import { hash } from 'node:crypto';
import type { World } from '../world.ts';
import type { ProtocolParts } from './parts.ts';
import { createSecret, hashSecret, SECRET_LENGTH } from './secret-text.ts';
import type { NewToken } from './token-store.ts';

export interface TokenPair {
  readonly accessToken: string;
  readonly refreshToken: string;
}

/** The token object of the contract, with `token_type` of RFC 6749 §5.1. */
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

export function toNewAccess({ lifetimes }: ProtocolParts, accessToken: string, nowMs: number): NewToken {
  return { hash: hashSecret(accessToken), expiresAtMs: nowMs + lifetimes.accessTokenSeconds * 1000 };
}

export function toNewRefresh({ lifetimes }: ProtocolParts, refreshToken: string, nowMs: number): NewToken {
  return { hash: hashSecret(refreshToken), expiresAtMs: nowMs + lifetimes.refreshIdleDays * DAY_MS };
}

export function computeFamilyEnd({ lifetimes }: ProtocolParts, nowMs: number): number {
  return nowMs + lifetimes.refreshMaxDays * DAY_MS;
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

const NONCE_LENGTH = 16;

/**
 * Only who holds the old token can open it; its digest in the table is of no use. The old token is 256 random bits, so
 * SHAKE256 of it with a nonce is a key stream of its own for every box, at a tenth of what a cipher of Node costs. A box
 * that was changed opens to tokens that nobody issued.
 */
export function sealSuccessor(oldToken: string, pair: TokenPair, world: World): Uint8Array {
  const nonce = world.randomBytes(NONCE_LENGTH);
  const box = new Uint8Array(NONCE_LENGTH + PAIR_LENGTH);
  box.set(nonce);
  box.set(Buffer.from(pair.accessToken + pair.refreshToken, 'latin1'), NONCE_LENGTH);
  applyKeyStream(oldToken, box);
  return box;
}

export function openSuccessor(oldToken: string, sealed: Uint8Array): TokenPair {
  const box = new Uint8Array(sealed);
  applyKeyStream(oldToken, box);
  const text = Buffer.from(box.subarray(NONCE_LENGTH)).toString('latin1');
  return { accessToken: text.slice(0, SECRET_LENGTH), refreshToken: text.slice(SECRET_LENGTH) };
}

const PAIR_LENGTH = 2 * SECRET_LENGTH;

/** Covers or uncovers everything behind the nonce, in place. */
function applyKeyStream(oldToken: string, box: Uint8Array): void {
  const nonce = Buffer.from(box.subarray(0, NONCE_LENGTH)).toString('hex');
  const stream = hash('shake256', `trivet refresh successor ${nonce} ${oldToken}`, {
    outputLength: PAIR_LENGTH,
    outputEncoding: 'buffer',
  });
  for (let index = 0; index < PAIR_LENGTH; index++) box[NONCE_LENGTH + index]! ^= stream[index]!;
}
