/** Chooses the next step that would protect an account better. */
import type { Advice } from '../../pages/signed-in-pages.ts';
import { listPasskeys } from '../accounts/passkey-store.ts';
import { countRecoveryCodes, hasTotp } from '../accounts/totp-store.ts';
import { findUserById } from '../accounts/user-store.ts';
import type { Messages } from '../messages/messages.ts';
import { canUsePasskeys } from '../sign-in/passkeys.ts';
import type { SignInContext } from '../sign-in/sign-in-context.ts';

const FEW_CODES = 3;

/** Returns undefined if there is nothing to advise. */
export async function findAdvice(
  messages: Messages,
  { store, baseUrl }: Pick<SignInContext, 'store' | 'baseUrl'>,
  userId: string,
): Promise<Advice | undefined> {
  const [user, totp, left, passkeys] = await Promise.all([
    findUserById(store, userId),
    hasTotp(store, userId),
    countRecoveryCodes(store, userId),
    listPasskeys(store, userId),
  ]);
  const place = { path: '/account/security', label: messages.nav.security };
  if (totp && left < FEW_CODES) return { text: messages.advice.fewCodes(left), ...place };
  if (user === undefined || user.passwordChangedAtMs === null || totp || passkeys.length > 0) return undefined;
  const { passkeyOrSecondStep, secondStep } = messages.advice;
  return { text: canUsePasskeys(baseUrl) ? passkeyOrSecondStep : secondStep, ...place };
}
