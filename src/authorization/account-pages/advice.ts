/** The next step that would protect an account better. */
import type { Store } from '../../database/store.ts';
import type { Advice } from '../../pages/signed-in-pages.ts';
import { listPasskeys } from '../accounts/passkey-store.ts';
import { countRecoveryCodes, hasTotp } from '../accounts/totp-store.ts';
import { findUserById } from '../accounts/user-store.ts';
import type { Messages } from '../messages/messages.ts';

const FEW_CODES = 3;

/** Undefined when nothing is missing. */
export async function findAdvice(messages: Messages, store: Store, userId: string): Promise<Advice | undefined> {
  const [user, totp, left, passkeys] = await Promise.all([
    findUserById(store, userId),
    hasTotp(store, userId),
    countRecoveryCodes(store, userId),
    listPasskeys(store, userId),
  ]);
  const place = { path: '/account/security', label: messages.nav.security };
  if (totp && left < FEW_CODES) return { text: messages.advice.fewCodes(left), ...place };
  const hasPasswordOnly = user !== undefined && user.passwordChangedAtMs !== null && !totp && passkeys.length === 0;
  return hasPasswordOnly ? { text: messages.advice.oneStep, ...place } : undefined;
}
