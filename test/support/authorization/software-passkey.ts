/** A passkey without a browser: an ES256 key that answers WebAuthn ceremonies, without attestation. */
import { createHash, createSign, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto';

export interface SoftwarePasskey {
  readonly id: string;
  /** The public key in COSE format. */
  readonly publicKey: Uint8Array;
  /** What the script of the page posts at the end of a sign-in, as JSON. */
  readonly signIn: (challenge: string) => string;
  /** The same at the end of a registration. `more`: fields of the response. */
  readonly register: (challenge: string, more?: Readonly<Record<string, unknown>>) => string;
}

const USER_PRESENT_AND_VERIFIED = 0x05;
const HAS_CREDENTIAL = 0x40;

export function createSoftwarePasskey(origin: string): SoftwarePasskey {
  const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const rawId = randomBytes(16);
  const id = rawId.toString('base64url');
  const publicKey = encodeCoseKey(pair.publicKey);
  const describe = (response: object) =>
    JSON.stringify({ id, rawId: id, type: 'public-key', clientExtensionResults: {}, response });
  return {
    id,
    publicKey,
    signIn: (challenge) => {
      const clientData = encodeClientData('webauthn.get', challenge, origin);
      const data = encodeAuthenticatorData(origin, USER_PRESENT_AND_VERIFIED);
      const signed = Buffer.concat([data, createHash('sha256').update(clientData).digest()]);
      const signature = createSign('sha256').update(signed).sign(pair.privateKey).toString('base64url');
      const authenticatorData = data.toString('base64url');
      return describe({ clientDataJSON: clientData.toString('base64url'), authenticatorData, signature });
    },
    register: (challenge, more = {}) => {
      const clientDataJSON = encodeClientData('webauthn.create', challenge, origin).toString('base64url');
      const credential = Buffer.concat([Buffer.alloc(16), Buffer.from([0, rawId.length]), rawId, publicKey]);
      const data = encodeAuthenticatorData(origin, USER_PRESENT_AND_VERIFIED | HAS_CREDENTIAL, credential);
      const attestationObject = encodeAttestation(data).toString('base64url');
      return describe({ clientDataJSON, attestationObject, ...more });
    },
  };
}

function encodeClientData(type: string, challenge: string, origin: string): Buffer {
  return Buffer.from(JSON.stringify({ type, challenge, origin, crossOrigin: false }));
}

function encodeAuthenticatorData(origin: string, flags: number, credential = Buffer.alloc(0)): Buffer {
  const relyingParty = createHash('sha256').update(new URL(origin).hostname).digest();
  return Buffer.concat([relyingParty, Buffer.from([flags, 0, 0, 0, 0]), credential]);
}

/** `{1: 2, 3: -7, -1: 1, -2: x, -3: y}` in CBOR. */
function encodeCoseKey(key: KeyObject): Uint8Array {
  const { x = '', y = '' } = key.export({ format: 'jwk' });
  const point = (coordinate: string) => Buffer.from(coordinate, 'base64url');
  return Buffer.concat([Buffer.from('a5010203262001215820', 'hex'), point(x), Buffer.from('225820', 'hex'), point(y)]);
}

/** `{fmt: "none", attStmt: {}, authData}` in CBOR. */
function encodeAttestation(data: Buffer): Buffer {
  const text = (word: string) => Buffer.concat([Buffer.from([0x60 + word.length]), Buffer.from(word)]);
  const parts = [text('fmt'), text('none'), text('attStmt'), Buffer.from([0xa0]), text('authData')];
  return Buffer.concat([Buffer.from([0xa3]), ...parts, Buffer.from([0x58, data.length]), data]);
}
