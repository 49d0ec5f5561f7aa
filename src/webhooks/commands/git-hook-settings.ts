/** Finds the service that a bare repository publishes to, and the token for it: in its settings file, or as the options say. */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { readNamedFile } from '../../command-line/output.ts';
import { describeError, Failure } from '../../errors.ts';
import type { ServiceAddress } from '../git/http-sender.ts';
import { isRepositoryName } from '../git/read-entry.ts';

export const SETTINGS_FILE = 'trivet.json';
export const DEFAULT_URL = 'http://127.0.0.1:8080';

export interface Connection {
  readonly service?: string;
  readonly tokenFile?: string;
  readonly gitDir: string;
}

/** The stored token is for the service that it was stored with, and for no other. */
export function readAddress({ service, tokenFile, gitDir }: Connection): ServiceAddress {
  const file = join(resolve(gitDir), SETTINGS_FILE);
  const settings = existsSync(file) ? readSettings(file) : {};
  const ofToken = trimUrl(settings.url ?? DEFAULT_URL);
  const url = service === undefined ? ofToken : trimUrl(service);
  const token = tokenFile === undefined ? settings.token : readToken(tokenFile);
  if (token === undefined)
    throw new Failure('invalid', `Cannot reach the service: give --token-file, or run git-hook install`);
  if (tokenFile === undefined && !isSameUrl(url, ofToken))
    throw new Failure(
      'invalid',
      `Cannot reach "${url}": the token in "${file}" is for "${ofToken}"; give --token-file`,
    );
  return { url, token };
}

function trimUrl(url: string): string {
  return url.replace(/\/+$/, '');
}

/** Capitals of the host and the default port make no difference. */
function isSameUrl(one: string, other: string): boolean {
  return URL.parse(one)?.href === URL.parse(other)?.href;
}

function readSettings(file: string): Partial<ServiceAddress> {
  const settings = parseSettings(file, readNamedFile(file));
  const { url = '', token = '' } = { ...(settings as Partial<ServiceAddress> | null) };
  if (settings?.constructor === Object && typeof url === 'string' && typeof token === 'string') return settings;
  throw refuseSettings(file, 'it must be an object whose url and token are strings');
}

function parseSettings(file: string, text: string): object | null {
  try {
    return JSON.parse(text) as object | null;
  } catch (error) {
    throw refuseSettings(file, describeError(error));
  }
}

function refuseSettings(file: string, reason: string): Failure {
  return new Failure('invalid', `Cannot read the settings of the hook in "${file}": ${reason}`);
}

export function readToken(file: string): string {
  const token = readNamedFile(file).trim();
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  const found = token === '' ? 'is empty' : 'has more than that';
  throw new Failure('invalid', `Cannot use the token file: it must hold one token, but "${file}" ${found}`);
}

export function parseRepository(value: string): string {
  if (isRepositoryName(value)) return value;
  throw new Failure('invalid', `Cannot publish: --repo must be owner/name, got "${value}"`);
}
