/** Makes tokens, words the answer that carries them, and seals a pair for the one who held the token before it. */
import { createCipheriv, createDecipheriv, hash } from 'node:crypto';
import type { World } from '../world.ts';
import type { ProtocolParts } from './parts.ts';
import { createSecret, hashSecret } from './secret-text.ts';
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

const NONCE_LENGTH = 12;
const TAG_LENGTH = 16;

/** Only who holds the old token can open it; its digest in the table is of no use. */
export function sealSuccessor(oldToken: string, pair: TokenPair, world: World): Uint8Array {
  const nonce = world.randomBytes(NONCE_LENGTH);
  const cipher = createCipheriv('aes-256-gcm', deriveSuccessorKey(oldToken), nonce);
  const body = Buffer.concat([cipher.update(`${pair.accessToken} ${pair.refreshToken}`), cipher.final()]);
  // A copy of its own: a Buffer out of Node's pool would take the whole pool along to the writer thread.
  return new Uint8Array(Buffer.concat([nonce, cipher.getAuthTag(), body]));
}

export function openSuccessor(oldToken: string, box: Uint8Array): TokenPair {
  const bodyAt = NONCE_LENGTH + TAG_LENGTH;
  const decipher = createDecipheriv('aes-256-gcm', deriveSuccessorKey(oldToken), box.subarray(0, NONCE_LENGTH));
  decipher.setAuthTag(box.subarray(NONCE_LENGTH, bodyAt));
  const text = Buffer.concat([decipher.update(box.subarray(bodyAt)), decipher.final()]).toString();
  const [accessToken = '', refreshToken = ''] = text.split(' ');
  return { accessToken, refreshToken };
}

/** The old token has 256 random bits, so one hash with a name of its own is key derivation enough. */
function deriveSuccessorKey(oldToken: string): Buffer {
  return hash('sha256', `trivet refresh successor ${oldToken}`, 'buffer');
}
