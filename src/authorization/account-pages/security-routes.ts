/**
 * Serves the security page: change the password, add and remove passkeys and other ways to sign in. Every action that adds a way
 * to sign in requires a recent sign-in.
 */
import type { BoundStatement } from '../../database/store.ts';
import { Failure, isFailure } from '../../errors.ts';
import { readField, toMistake } from '../../pages/page-routes.ts';
import { findDone } from '../../pages/signed-in-pages.ts';
import { removeWayInOnce } from '../accounts/access-store.ts';
import { checkAttempt, forgiveAttempt, takeBackAttempt } from '../accounts/attempt-store.ts';
import { type AuditEvent, auditStatement, kindOfNewPassword } from '../accounts/audit-store.ts';
import { deletePasskeyStatement, listPasskeys } from '../accounts/passkey-store.ts';
import { changePasswordOnce } from '../accounts/password-store.ts';
import { endOtherSessionsStatement, keepSessionStatement } from '../accounts/session-store.ts';
import { type AttemptSubject, attemptSubjects } from '../accounts/sign-in-throttle.ts';
import { countRecoveryCodes, hasTotp } from '../accounts/totp-store.ts';
import { listUpstreamAccounts } from '../accounts/upstream-account-store.ts';
import { findCredentials } from '../accounts/user-store.ts';
import { readMessages } from '../messages/messages.ts';
import { passkeyScript } from '../sign-in/passkey-script.ts';
import {
  beginRegistration,
  canUsePasskeys,
  checkPasskeyName,
  finishRegistration,
  toCeremonyJson,
} from '../sign-in/passkeys.ts';
import { checkHashPlace, checkNewPassword, hashPassword, isPassword } from '../sign-in/password.ts';
import { type HashCaller, isBusy } from '../sign-in/password-hash-queue.ts';
import { clientAddress } from '../sign-in/read-client-address.ts';
import { prepareEndedCount } from '../tokens/ended-tokens-store.ts';
import { deletePersonalTokens } from '../tokens/personal-token-store.ts';
import type { AccountPages, PageRequest, Submission } from './account-pages.ts';
import { askToSignInAgain, isFresh } from './recent-sign-in.ts';
import { renderSecurity, type SecurityForm, type SecurityView } from './security-page.ts';

export const SECURITY = '/account/security';

type Context = AccountPages['context'];

export function addSecurityRoutes(pages: AccountPages): void {
  const { context, page } = pages;
  page(SECURITY, (request) => showSecurity(context, request, {}));
  addPasswordForm(pages);
  addPasskeyForms(pages);
}

export async function showSecurity(
  context: Context,
  { c, session, show }: PageRequest,
  { mistake }: Pick<SecurityView, 'mistake'>,
): Promise<Response> {
  const messages = readMessages(c);
  const t = messages.security;
  const { user, csrfToken } = session;
  const [totp, left, passkeys, accounts] = await Promise.all([
    hasTotp(context.store, user.id),
    countRecoveryCodes(context.store, user.id),
    listPasskeys(context.store, user.id),
    listUpstreamAccounts(context.store, user.id),
  ]);
  const content = renderSecurity(messages, {
    user,
    csrfToken,
    hasTotp: totp,
    recoveryCodesLeft: left,
    passkeys,
    canUsePasskeys: canUsePasskeys(context.baseUrl),
    isFresh: isFresh(session, context),
    upstream: context.upstream && {
      name: context.upstream.config.name,
      account: accounts.find((account) => account.issuer === context.upstream?.config.issuer),
    },
    done: findDone(c, {
      changed: t.changed,
      totp_stopped: t.totpStopped,
      linked: t.linked,
      not_linked: t.notLinked,
      saved: t.saved,
    }),
    mistake,
  });
  return show(
    { title: t.title, here: SECURITY, at: SECURITY, content, script: passkeyScript },
    { status: mistake ? 422 : 200 },
  );
}

/** Throws `invalid` unless the field holds the person's password; guesses are counted as at the sign-in. */
export async function checkCurrentPassword(
  context: Context,
  { c, session, form }: Submission,
  field: string,
): Promise<void> {
  const messages = readMessages(c);
  const { login, passwordChangedAtMs } = session.user;
  if (passwordChangedAtMs === null) return;
  // The session counts as a known device, so that failures of strangers do not make its person wait.
  const attempt = { kind: 'password', account: login, address: clientAddress(c), deviceId: session.id } as const;
  const subjects = attemptSubjects(attempt);
  const caller = { key: session.id, isKnown: true };
  checkHashPlace(caller);
  await checkAttempt(context.store, { subjects, nowMs: context.world.nowMs() });
  const credentials = await findCredentials(context.store, login);
  if (
    !(await isPasswordOrUncounted(context, {
      hash: credentials?.passwordHash,
      password: readField(form, field),
      caller,
      subjects,
    }))
  )
    throw new Failure('invalid', messages.security.wrongCurrent.replace(/\.$/, ''), { field });
  await forgiveAttempt(context.store, subjects);
}

interface GivenPassword {
  readonly hash: string | null | undefined;
  readonly password: string;
  readonly caller: HashCaller;
  readonly subjects: readonly AttemptSubject[];
}

/** Throws `unavailable`, and takes the attempt back, if the hash queue is full: a password that was not checked is no guess. */
async function isPasswordOrUncounted(
  { store }: Context,
  { hash, password, caller, subjects }: GivenPassword,
): Promise<boolean> {
  try {
    return await isPassword(hash, password, caller);
  } catch (error) {
    if (isBusy(error)) await takeBackAttempt(store, subjects);
    throw error;
  }
}

function addPasswordForm({ context, form }: AccountPages): void {
  form(`${SECURITY}/password`, async (submission) => {
    const messages = readMessages(submission.c);
    const { c, session } = submission;
    const { user } = session;
    const again = user.passwordChangedAtMs === null ? askToSignInAgain(submission, context, SECURITY) : undefined;
    if (again !== undefined) return again;
    const password = readField(submission.form, 'password');
    try {
      await checkCurrentPassword(context, submission, 'current');
      checkNewPassword(password, user);
    } catch (error) {
      return showSecurity(context, submission, { mistake: { ...toMistake(messages, error), form: 'password' } });
    }
    const nowMs = context.world.nowMs();
    const revokesTokens = submission.form.has('revoke');
    const { id: userId } = user;
    const whose = { userId, address: clientAddress(c) };
    const details = { tokens_revoked: revokesTokens };
    const revoked = { ...whose, kind: 'personal_token_revoked', details: { which: 'all' } } as const;
    const ending = { reason: 'password', userId, endsPersonal: revokesTokens } as const;
    const countEnded = await prepareEndedCount(context, ending);
    const isChanged = await context.store.call(changePasswordOnce, {
      userId,
      credentialGeneration: user.credentialGeneration,
      passwordHash: await hashPassword(password, { key: session.id, isKnown: true }),
      nowMs,
      statements: [
        // All other sessions end: an intruder who knew the old password is signed out.
        keepSessionStatement(session.id, userId),
        endOtherSessionsStatement(userId, session.id),
        auditStatement({ ...whose, kind: kindOfNewPassword(user), details }, nowMs),
      ],
      changes: revokesTokens ? [deletePersonalTokens(userId, auditStatement(revoked, nowMs))] : [],
    });
    if (!isChanged) throw new Failure('conflict', 'Cannot change the password: another one was set meanwhile');
    countEnded();
    return c.redirect(`${SECURITY}?done=changed`, 303);
  });
}

function addPasskeyForms({ context, form }: AccountPages): void {
  form(`${SECURITY}/passkeys/options`, (submission) => offerPasskey(context, submission));
  form(`${SECURITY}/passkeys`, (submission) => addPasskey(context, submission));
  form(`${SECURITY}/passkeys/remove`, (submission) => removePasskey(context, submission));
}

async function offerPasskey(context: Context, submission: Submission): Promise<Response> {
  if (askToSignInAgain(submission, context, SECURITY) !== undefined)
    throw new Failure('forbidden', 'Cannot add a passkey: the sign-in is too long ago');
  submission.c.header('Cache-Control', 'no-store');
  return submission.c.json(toCeremonyJson(await beginRegistration(context, submission.session.user)));
}

async function addPasskey(context: Context, submission: Submission): Promise<Response> {
  const messages = readMessages(submission.c);
  const again = askToSignInAgain(submission, context, SECURITY);
  if (again !== undefined) return again;
  const name = readField(submission.form, 'name').trim() || messages.security.passkeyDefaultName;
  const answer = {
    challengeToken: readField(submission.form, 'ticket'),
    credential: readField(submission.form, 'credential'),
  };
  try {
    checkPasskeyName(name);
    const address = clientAddress(submission.c);
    await finishRegistration(context, { user: submission.session.user, name, address, answer });
  } catch (error) {
    const mistake = { ...toMistake(messages, error), field: undefined, form: 'passkeys' } as const;
    return showSecurity(context, submission, { mistake });
  }
  return submission.c.redirect(`${SECURITY}?done=saved`, 303);
}

async function removePasskey(context: Context, submission: Submission): Promise<Response> {
  const { c, session } = submission;
  const event = { kind: 'passkey_removed', userId: session.user.id, address: clientAddress(c) } as const;
  const remove = deletePasskeyStatement(readField(submission.form, 'passkey_id'), session.user.id);
  return removeWayIn(context, submission, { form: 'passkeys', remove, event });
}

export interface RemovedWayIn {
  /** The form that shows the refusal. */
  readonly form: SecurityForm;
  readonly remove: BoundStatement;
  readonly event: AuditEvent;
}

/** Removes a way to sign in, or shows the page with the reason if it is the last one. */
export async function removeWayIn(
  context: Context,
  submission: Submission,
  { form, remove, event }: RemovedWayIn,
): Promise<Response> {
  const { c, session } = submission;
  const removal = {
    userId: session.user.id,
    upstreamIssuer: context.upstream?.config.issuer,
    remove,
    audit: auditStatement(event, context.world.nowMs()),
  };
  try {
    await context.store.call(removeWayInOnce, removal);
  } catch (error) {
    if (!isFailure(error) || error.code !== 'conflict') throw error;
    const messages = readMessages(c);
    return showSecurity(context, submission, { mistake: { message: messages.security.lastWayIn, form } });
  }
  return c.redirect(`${SECURITY}?done=saved`, 303);
}
