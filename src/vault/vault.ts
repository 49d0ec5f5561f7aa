/**
 * Secrets that must be read again (webhook keys, TOTP seeds, signing keys) are stored sealed: AES-256-GCM under the
 * service's key, bound by additional data to the row they belong to, so that a copied column opens nowhere else.
 * The key's id travels with every box: an old key keeps opening what it sealed while the first one seals.
 *
 * Layout of a box: version (1 byte) · key id (4 bytes) · nonce (12) · tag (16) · ciphertext.
 */
import { createCipheriv, createDecipheriv, createHash } from 'node:crypto';
import { Failure } from '../errors.ts';
import type { World } from '../world.ts';

export interface Vault {
  /** The prefix of every box that is sealed now; a box with another prefix is sealed under a former key. */
  readonly mark: Uint8Array;
  /** `binding` names the row, for example `hook:123`; the same must be given to open. */
  seal(secret: string | Uint8Array, binding: string): Uint8Array;
  /** Throws `internal` when the box was sealed for another row, with an unknown key, or was changed. */
  open(box: Uint8Array, binding: string): Buffer;
}

const VERSION = 1;
const NONCE_AT = 5;
const TAG_AT = NONCE_AT + 12;
const BODY_AT = TAG_AT + 16;

/** `keys` are 32 bytes each; the first seals, all open. */
export function createVault(keys: readonly Uint8Array[], world: World): Vault {
  const [sealing] = keys;
  if (sealing === undefined) throw new Failure('invalid', 'Cannot create the vault: at least one key is needed');
  const keyById = new Map(keys.map((key) => [keyId(key), key]));
  const mark = Buffer.alloc(NONCE_AT, VERSION);
  mark.writeUInt32BE(keyId(sealing), 1);
  return {
    mark,
    seal(secret, binding) {
      const nonce = world.randomBytes(12);
      const cipher = createCipheriv('aes-256-gcm', sealing, nonce).setAAD(Buffer.from(binding));
      const body = Buffer.concat([cipher.update(secret), cipher.final()]);
      return Buffer.concat([mark, nonce, cipher.getAuthTag(), body]);
    },
    open(box, binding) {
      const bytes = Buffer.from(box.buffer, box.byteOffset, box.byteLength);
      const key = bytes.length >= BODY_AT && bytes[0] === VERSION ? keyById.get(bytes.readUInt32BE(1)) : undefined;
      if (key === undefined) throw new Failure('internal', `Cannot open the secret of ${binding}: its key is not here`);
      return decrypt(bytes, key, binding);
    },
  };
}

function decrypt(bytes: Buffer, key: Uint8Array, binding: string): Buffer {
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(NONCE_AT, TAG_AT))
      .setAAD(Buffer.from(binding))
      .setAuthTag(bytes.subarray(TAG_AT, BODY_AT));
    return Buffer.concat([decipher.update(bytes.subarray(BODY_AT)), decipher.final()]);
  } catch (cause) {
    throw new Failure('internal', `Cannot open the secret of ${binding}: it was changed or moved`, {}, { cause });
  }
}

/** The first four bytes of the key's digest: names a key without telling anything about it. */
export function keyId(key: Uint8Array): number {
  return createHash('sha256').update('trivet key id').update(key).digest().readUInt32BE(0);
}
