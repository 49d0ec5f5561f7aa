/**
 * Limits how often OAuth clients may send a wrong secret or start a device flow, and people may type user codes (429). A client with the
 * right secret never waits for wrong ones. A client's limit at one address does not count for the same client elsewhere, or any stranger could
 * lock it out. The counts are kept in this process: N processes allow N times as much, which is still far too little to guess a
 * 256-bit secret.
 */
import { Failure } from '../../errors.ts';
import { copyText } from '../../http/copy-text.ts';
import type { World } from '../../world.ts';

export type AttemptKind = 'client' | 'grant' | 'user_code' | 'device_start' | 'device_start_of_site';

export interface ClientLimits {
  /** Throws `too_many` while this subject has to wait. */
  check(kind: AttemptKind, subject: string): void;
  countFailure(kind: AttemptKind, subject: string): void;
  checkAndCount(kind: AttemptKind, subject: string): void;
  /** Uncounts an attempt that was counted before its outcome was known, and was right. */
  takeBack(kind: AttemptKind, subject: string): void;
}

/**
 * Attempts a minute. Grants also fail without an attack, when sessions end, and one server may speak for many users. `device_start_of_site` counts the /48 of
 * an IPv6 address.
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
/** The most subjects of each kind. Strangers choose client ids, so beyond this the older half is forgotten. */
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
