/**
 * Encrypts stored secrets that must be read again (webhook keys, TOTP seeds, signing keys) with AES-256-GCM. The associated data
 * names the row, so a ciphertext that was copied to another row cannot be decrypted. Each ciphertext carries the id of its key.
 * The first key encrypts; all keys decrypt.
 *
 * Layout of a ciphertext: version (1 byte) · key id (4 bytes) · nonce (12) · tag (16) · encrypted bytes.
 */
import { createCipheriv, createDecipheriv, createHash } from 'node:crypto';
import { Failure } from '../errors.ts';
import type { World } from '../world.ts';

export interface SecretCipher {
  /** Version and key id: the first bytes of every new ciphertext. Another prefix means a former key. */
  readonly keyPrefix: Uint8Array;
  /** The ids of all keys, the current one first. */
  readonly keyIds: readonly number[];
  /** `associatedData` names the row, for example `hook:123`. Decryption needs the same. */
  encrypt(secret: string | Uint8Array, associatedData: string): Uint8Array;
  /** Throws `internal` when the ciphertext belongs to another row, has an unknown key, or was changed. */
  decrypt(ciphertext: Uint8Array, associatedData: string): Buffer;
}

const VERSION = 1;
const NONCE_AT = 5;
const TAG_AT = NONCE_AT + 12;
const BODY_AT = TAG_AT + 16;

/** `keys` are 32 bytes each; the first encrypts, all decrypt. */
export function createSecretCipher(keys: readonly Uint8Array[], world: World): SecretCipher {
  const [current] = keys;
  if (current === undefined) throw new Failure('invalid', 'Cannot encrypt secrets: at least one key is needed');
  const keyById = new Map(keys.map((key) => [keyId(key), key]));
  const keyPrefix = Buffer.alloc(NONCE_AT, VERSION);
  keyPrefix.writeUInt32BE(keyId(current), 1);
  return {
    keyPrefix,
    keyIds: [...keyById.keys()],
    encrypt(secret, associatedData) {
      const nonce = world.randomBytes(12);
      const cipher = createCipheriv('aes-256-gcm', current, nonce).setAAD(Buffer.from(associatedData));
      const body = Buffer.concat([cipher.update(secret), cipher.final()]);
      return Buffer.concat([keyPrefix, nonce, cipher.getAuthTag(), body]);
    },
    decrypt(ciphertext, associatedData) {
      const bytes = Buffer.from(ciphertext.buffer, ciphertext.byteOffset, ciphertext.byteLength);
      const key = bytes.length >= BODY_AT && bytes[0] === VERSION ? keyById.get(bytes.readUInt32BE(1)) : undefined;
      if (key !== undefined) return decryptBytes(bytes, key, associatedData);
      throw new Failure('internal', `Cannot decrypt the secret of ${associatedData}: its key is not here`);
    },
  };
}

function decryptBytes(bytes: Buffer, key: Uint8Array, associatedData: string): Buffer {
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(NONCE_AT, TAG_AT))
      .setAAD(Buffer.from(associatedData))
      .setAuthTag(bytes.subarray(TAG_AT, BODY_AT));
    return Buffer.concat([decipher.update(bytes.subarray(BODY_AT)), decipher.final()]);
  } catch (cause) {
    const message = `Cannot decrypt the secret of ${associatedData}: it was changed or moved`;
    throw new Failure('internal', message, {}, { cause });
  }
}

/** The first four bytes of the key's digest, which reveal nothing about the key. */
export function keyId(key: Uint8Array): number {
  return createHash('sha256').update('trivet key id').update(key).digest().readUInt32BE(0);
}
