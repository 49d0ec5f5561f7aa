/** Reads the keys that encrypt stored secrets, creates the first one, and refuses a store that was encrypted with another key. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createSecretCipher, type SecretCipher } from '../../encryption/secret-cipher.ts';
import { Failure } from '../../errors.ts';
import type { World } from '../../world.ts';
import { createDurableFile } from '../durable-file.ts';
import { createEncryptedColumn } from '../reencrypt-store.ts';
import { type Row, type Statement, type Store, statement } from '../store.ts';
import { ensureDataDir } from './data-dir.ts';

export interface EncryptionKeySource {
  readonly dataDir: string;
  /** The setting `store.secretKeys`; with it, no key file is used. */
  readonly configured: readonly Uint8Array[] | undefined;
  readonly world: World;
}

const KEY_FILE = 'keys';
const KEY_BYTES = 32;

/** Returns the keys that encrypt secrets, the one for new secrets first: from the configuration, or from the file if it exists. */
export function readEncryptionKeys({ dataDir, configured }: EncryptionKeySource): readonly Uint8Array[] | undefined {
  return configured !== undefined && configured.length > 0 ? configured : readKeyFile(join(dataDir, KEY_FILE));
}

/** Creates the key file if it does not exist. */
export function createEncryptionKeys({ dataDir, world }: EncryptionKeySource): readonly Uint8Array[] {
  ensureDataDir(dataDir);
  const path = join(dataDir, KEY_FILE);
  createDurableFile(path, `${Buffer.from(world.randomBytes(KEY_BYTES)).toString('base64')}\n`);
  // Read again: another process may have been first.
  return readKeyFile(path) ?? [];
}

function readKeyFile(path: string): readonly Uint8Array[] | undefined {
  const text = readIfPresent(path);
  if (text === undefined) return undefined;
  const keys = text.split(/\s+/).filter((line) => line !== '');
  const isValid = keys.length > 0 && keys.every((key) => Buffer.from(key, 'base64').length === KEY_BYTES);
  if (isValid) return keys.map((key) => new Uint8Array(Buffer.from(key, 'base64')));
  throw new Failure('invalid', `Cannot read the keys in "${path}": each line must be base64 of ${KEY_BYTES} bytes`);
}

function readIfPresent(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Returns the cipher of this database after it has checked the keys. A database with encrypted secrets gets no new key. */
export async function openSecretCipher(store: Store, source: EncryptionKeySource): Promise<SecretCipher> {
  const keys = readEncryptionKeys(source);
  if (keys === undefined && (await findCanary(store)) !== undefined) throw refuseKeys();
  const cipher = createSecretCipher(keys ?? createEncryptionKeys(source), source.world);
  await checkEncryptionKeys(store, cipher);
  return cipher;
}

const insertCanarySql: Statement<Row> = statement(
  'vault-canary-insert',
  'INSERT INTO vault_canaries (id, sealed) VALUES (1, $1) ON CONFLICT (id) DO NOTHING',
);

const findCanarySql: Statement<{ readonly sealed: Uint8Array }> = statement(
  'vault-canary-find',
  'SELECT sealed FROM vault_canaries WHERE id = 1',
);

/** The test value is encrypted again last: then the first key decrypts everything, and a start without the others is correct. */
export const ENCRYPTED_CANARY = createEncryptedColumn({
  name: 'the test value for checking keys',
  table: 'vault_canaries',
  column: 'sealed',
  keys: ['id'],
  start: [0],
  associatedData: () => ASSOCIATED_DATA,
});

// Existing stores use it as associated data: with another value none of them could be opened.
const ASSOCIATED_DATA = 'vault-canary';
const WORD = 'tweet';

/**
 * Throws unless these keys belong to this database: the first program that used it has stored an encrypted test value.
 * Otherwise a wrong key would be noticed late, with half the secrets encrypted with each.
 */
export async function checkEncryptionKeys(store: Store, cipher: SecretCipher): Promise<void> {
  const canary = (await findCanary(store)) ?? (await leaveCanary(store, cipher));
  try {
    cipher.decrypt(canary, ASSOCIATED_DATA);
  } catch (cause) {
    throw refuseKeys(cause);
  }
}

/**
 * Does the same check for a program that only reads: creates no key, stores no test value. Returns false when nothing is encrypted yet.
 */
export async function checkStoredKeys(store: Pick<Store, 'read'>, source: EncryptionKeySource): Promise<boolean> {
  const keys = readEncryptionKeys(source);
  const canary = await findCanary(store);
  if (canary === undefined) return false;
  if (keys === undefined) throw refuseKeys();
  try {
    createSecretCipher(keys, source.world).decrypt(canary, ASSOCIATED_DATA);
    return true;
  } catch (cause) {
    throw refuseKeys(cause);
  }
}

function refuseKeys(cause?: unknown): Failure {
  const message =
    'Cannot open the store: the secrets of this database are encrypted with a key that this program was not given; ' +
    'bring back the file "keys" of its data folder, or set SECRET_KEYS to the keys that were used';
  return new Failure('invalid', message, {}, { cause });
}

async function leaveCanary(store: Store, cipher: SecretCipher): Promise<Uint8Array> {
  const canary = cipher.encrypt(WORD, ASSOCIATED_DATA);
  await store.write(insertCanarySql, [canary]);
  return (await findCanary(store)) ?? canary;
}

async function findCanary(store: Pick<Store, 'read'>): Promise<Uint8Array | undefined> {
  const [row] = await store.read(findCanarySql);
  return row?.sealed;
}
