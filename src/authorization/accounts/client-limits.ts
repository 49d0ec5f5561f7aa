/**
 * Limits how often OAuth clients may send a wrong secret or start a device flow, and people may type user codes (429). Wrong
 * secrets never delay a client that sends the right one. Wrong secrets are counted per client and address; otherwise any
 * stranger could lock the client out. Each process keeps its own counts: N processes allow N times as many attempts, which is
 * still far too few to guess a 256-bit secret.
 */
import { Failure } from '../../errors.ts';
import { copyText } from '../../http/copy-text.ts';
import type { World } from '../../world.ts';

export type AttemptKind = 'client' | 'grant' | 'user_code' | 'device_start' | 'device_start_of_site';

export interface ClientLimits {
  /** Throws `too_many` with `retryAfterSeconds` while this subject has to wait. */
  check(kind: AttemptKind, subject: string): void;
  countFailure(kind: AttemptKind, subject: string): void;
  checkAndCount(kind: AttemptKind, subject: string): void;
  /** Takes back an attempt that was counted before its outcome was known and then succeeded, or could not be checked. */
  takeBack(kind: AttemptKind, subject: string): void;
}

/**
 * Attempts a minute. `grant` allows more: grants also fail when sessions end, and one server may act for many users.
 * `device_start_of_site` counts the /48 prefix of an IPv6 address.
 */
const ATTEMPTS_A_MINUTE: Record<AttemptKind, number> = {
  client: 20,
  grant: 300,
  user_code: 10,
  device_start: 60,
  device_start_of_site: 600,
};
const WINDOW_MS = 60_000;
const MAX_SUBJECT_LENGTH = 120;
/** The most subjects kept of each kind. Strangers choose client ids, so beyond this limit the older half is dropped. */
const MAX_SUBJECTS = 10_000;

interface Window {
  count: number;
  readonly endsAtMs: number;
}

type Windows = Map<string, Window>;

interface Halves {
  readonly recent: Windows;
  readonly older: Windows;
}

export function createClientLimits({ monotonicMs }: Pick<World, 'monotonicMs'>): ClientLimits {
  const halvesByKind: Record<AttemptKind, Halves> = {
    client: createHalves(),
    grant: createHalves(),
    user_code: createHalves(),
    device_start: createHalves(),
    device_start_of_site: createHalves(),
  };
  const findWindow = (kind: AttemptKind, subject: string) => {
    const { recent, older } = halvesByKind[kind];
    const key = toKey(subject);
    const window = recent.get(key) ?? older.get(key);
    return window !== undefined && window.endsAtMs > monotonicMs() ? window : undefined;
  };
  const openWindow = (kind: AttemptKind, subject: string) => {
    const { recent } = halvesByKind[kind];
    if (recent.size >= MAX_SUBJECTS / 2) halvesByKind[kind] = { recent: new Map(), older: recent };
    halvesByKind[kind].recent.set(copyText(toKey(subject)), { count: 1, endsAtMs: monotonicMs() + WINDOW_MS });
  };
  const check: ClientLimits['check'] = (kind, subject) => {
    const window = findWindow(kind, subject);
    if (window === undefined || window.count < ATTEMPTS_A_MINUTE[kind]) return;
    const retryAfterSeconds = Math.max(1, Math.ceil((window.endsAtMs - monotonicMs()) / 1000));
    throw new Failure('too_many', 'Too many attempts, try again later', { retryAfterSeconds });
  };
  const count: ClientLimits['countFailure'] = (kind, subject) => {
    const window = findWindow(kind, subject);
    if (window === undefined) openWindow(kind, subject);
    else window.count++;
  };
  return {
    check,
    countFailure: count,
    checkAndCount: (kind, subject) => {
      check(kind, subject);
      count(kind, subject);
    },
    takeBack: (kind, subject) => {
      const window = findWindow(kind, subject);
      if (window !== undefined && window.count > 0) window.count--;
    },
  };
}

function createHalves(): Halves {
  return { recent: new Map(), older: new Map() };
}

function toKey(subject: string): string {
  return subject.slice(0, MAX_SUBJECT_LENGTH);
}
