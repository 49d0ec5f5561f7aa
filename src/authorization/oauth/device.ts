/** Answers a device that requests its device code and user code (RFC 8628 §3.1), and parses user codes. */
import { Failure } from '../../errors.ts';
import { networkOf, prefix48Of } from '../../http/client-address.ts';
import { type Call, type Reply, replyJson } from '../../http/endpoint.ts';
import { createSecret, hashSecret } from '../accounts/secret-text.ts';
import { DEFAULT_SCOPE, formatScope, readRequestedScopes } from '../applications/scope.ts';
import type { ProtocolDependencies } from '../tokens/protocol-dependencies.ts';
import { checkGrantAllowed } from './grants/require-client.ts';
import { authenticateClient, readClient } from './protocol/client-authentication.ts';
import { insertDeviceCode } from './protocol/device-store.ts';
import { createOAuthFailure, refuseClient, refuseUnknownScopes } from './protocol/oauth-error.ts';
import { readParameters } from './protocol/parameters.ts';
import { UNCACHED } from './token.ts';

const LIFETIME_SECONDS = 900;
const INTERVAL_SECONDS = 5;
/** Consonants only, so that no code is a word, and no characters that look alike (RFC 8628 §6.1). 20^8 codes. */
const USER_CODE_ALPHABET = 'BCDFGHJKLMNPQRSTVWXZ';
const USER_CODE_LENGTH = 8;
const TRIES = 3;

export async function answerDeviceRequest(dependencies: ProtocolDependencies, call: Call): Promise<Reply> {
  const parameters = await readParameters(call);
  const presented = readClient(call.header('authorization'), parameters);
  const { clientId } = presented;
  if (clientId === undefined) throw createOAuthFailure('invalid_request', 'The parameter client_id is missing');
  const client = await authenticateClient(dependencies, { ...presented, clientId }, call.clientAddress);
  if (!client.application.isPublic && !client.isAuthenticated) throw refuseClient();
  checkGrantAllowed(client.application, 'device_code');
  // Limited because every start adds a row, and a public client needs no secret.
  limitStarts(dependencies, clientId, call.clientAddress);
  const codes = await createCodes(dependencies, { clientId, scope: readScope(parameters.values.get('scope')) });
  const shown = formatUserCode(codes.userCode);
  const body = {
    device_code: codes.deviceCode,
    user_code: shown,
    verification_uri: `${dependencies.issuer}/device`,
    verification_uri_complete: `${dependencies.issuer}/device?user_code=${shown}`,
    expires_in: LIFETIME_SECONDS,
    interval: INTERVAL_SECONDS,
  };
  return replyJson(body, UNCACHED);
}

/** Also counts for the /48 prefix, since one caller often has all of its 65,536 networks. */
function limitStarts({ limits }: ProtocolDependencies, clientId: string, address: string): void {
  limits.checkAndCount('device_start', `${clientId}|${networkOf(address)}`);
  const prefix48 = prefix48Of(address);
  if (prefix48 !== undefined) limits.checkAndCount('device_start_of_site', `${clientId}|${prefix48}`);
}

function readScope(text: string | undefined): string {
  if (text === undefined) return formatScope(DEFAULT_SCOPE);
  const scopes = readRequestedScopes(text);
  if (scopes.length === 0) throw refuseUnknownScopes();
  return formatScope(scopes);
}

async function createCodes(
  dependencies: ProtocolDependencies,
  { clientId, scope }: { clientId: string; scope: string },
) {
  const deviceCode = createSecret('device', dependencies.world);
  const issuedAtMs = dependencies.world.nowMs();
  for (let attempt = 0; attempt < TRIES; attempt++) {
    const userCode = createUserCode(dependencies);
    const isFree = await insertDeviceCode(dependencies.store, {
      deviceHash: hashSecret(deviceCode),
      userCode,
      clientId,
      scope,
      intervalSeconds: INTERVAL_SECONDS,
      issuedAtMs,
      expiresAtMs: issuedAtMs + LIFETIME_SECONDS * 1000,
    });
    if (isFree) return { deviceCode, userCode };
  }
  throw new Failure('unavailable', 'No user code is free, try again', { retryAfterSeconds: 1 });
}

function createUserCode({ world }: ProtocolDependencies): string {
  let code = '';
  while (code.length < USER_CODE_LENGTH) {
    // 240 is a multiple of 20: every letter is as likely as any other.
    for (const byte of world.randomBytes(16)) {
      if (byte < 240 && code.length < USER_CODE_LENGTH) code += USER_CODE_ALPHABET[byte % USER_CODE_ALPHABET.length];
    }
  }
  return code;
}

/** Formats the code as the device shows it. */
export function formatUserCode(code: string): string {
  return `${code.slice(0, 4)}-${code.slice(4)}`;
}

/** Normalizes a typed user code: ignores case, spaces and dashes. Undefined if it does not have the form of a code. */
export function parseUserCode(typed: string): string | undefined {
  const code = typed.toUpperCase().replaceAll(/[^A-Z0-9]/g, '');
  const isCode =
    code.length === USER_CODE_LENGTH && Array.from(code).every((letter) => USER_CODE_ALPHABET.includes(letter));
  return isCode ? code : undefined;
}
