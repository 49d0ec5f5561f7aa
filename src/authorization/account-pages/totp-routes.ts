/** Serves the pages that turn the second step on and off, and make recovery codes. */
import { Failure } from '../../errors.ts';
import type { Mistake } from '../../pages/elements.ts';
import { readField, toMistake } from '../../pages/page-routes.ts';
import { auditStatement, changeAndRecord } from '../accounts/audit-store.ts';
import {
  confirmTotpStatement,
  deleteRecoveryCodesStatement,
  findPendingTotp,
  lockTotpStatement,
  offerTotpSeed,
  replaceRecoveryCodesStatements,
  stopTotpStatement,
} from '../accounts/totp-store.ts';
import { readMessages } from '../messages/messages.ts';
import { clientAddress } from '../sign-in/read-client-address.ts';
import { createRecoveryCodes, createTotpSeed, findTimeStep, formatTotpUri } from '../sign-in/totp.ts';
import type { AccountPages, PageRequest } from './account-pages.ts';
import { askToSignInAgain } from './recent-sign-in.ts';
import { renderRecoveryCodes, renderTotpSetup, type SecurityForm } from './security-page.ts';
import { checkCurrentPassword, SECURITY, showSecurity } from './security-routes.ts';
import { prepareSecret, takeOnce } from './shown-once.ts';

const RECOVERY_CODES = `${SECURITY}/recovery-codes`;

/** Adds the routes. The second step is on only after its person has proven, with digits, that their app has the seed. */
export function addTotpRoutes(pages: AccountPages): void {
  addSetUp(pages);
  addStop(pages);
  addRecoveryCodes(pages);
}

/** Adds the page that shows new recovery codes once; a reload shows none. */
function addRecoveryCodes({ context, page }: AccountPages): void {
  page(RECOVERY_CODES, async (request) => {
    const messages = readMessages(request.c);
    const { texts: codes } = await takeOnce(context, request);
    if (codes.length === 0) return request.c.redirect(SECURITY, 303);
    return request.show({
      title: messages.security.recovery,
      here: SECURITY,
      content: renderRecoveryCodes(messages, codes),
    });
  });
}

function addSetUp({ context, page, form }: AccountPages): void {
  form(`${SECURITY}/totp`, async (submission) => {
    const again = askToSignInAgain(submission, context, SECURITY);
    if (again !== undefined) return again;
    const offer = { userId: submission.session.user.id, seed: createTotpSeed(context.world) };
    await offerTotpSeed(context.store, context.cipher, offer);
    return submission.c.redirect(`${SECURITY}/totp`, 303);
  });

  page(`${SECURITY}/totp`, (request) => showSetUp(context, request));

  form(`${SECURITY}/totp/confirm`, async (submission) => {
    const messages = readMessages(submission.c);
    const again = askToSignInAgain(submission, context, SECURITY);
    if (again !== undefined) return again;
    const { c, session } = submission;
    const nowMs = context.world.nowMs();
    const pending = await findPendingTotp(context.store, context.cipher, session.user.id);
    const timeStep = pending && findTimeStep(pending.seed, readField(submission.form, 'code'), nowMs);
    if (pending === undefined || timeStep === undefined)
      return showSetUp(context, submission, { message: messages.security.totpWrong, field: 'code' });
    const codes = createRecoveryCodes(context.world);
    const event = { kind: 'totp_enabled', userId: session.user.id, address: clientAddress(c) } as const;
    const shown = prepareSecret(context, submission, { path: RECOVERY_CODES, texts: codes });
    const { id: userId, credentialGeneration } = session.user;
    const { ciphertext } = pending;
    const isConfirmed = await context.store.call(changeAndRecord, {
      change: confirmTotpStatement({ userId, ciphertext, credentialGeneration, timeStep, nowMs }),
      statements: [...replaceRecoveryCodesStatements(userId, codes), shown.statement, auditStatement(event, nowMs)],
    });
    // Not confirmed: the form was sent twice (the first response has the codes), another seed was offered, or the session has ended.
    return isConfirmed ? shown.redirect() : c.redirect(`${SECURITY}/totp`, 303);
  });
}

async function showSetUp(context: AccountPages['context'], request: PageRequest, mistake?: Mistake): Promise<Response> {
  const { c, session, show } = request;
  const messages = readMessages(c);
  const pending = await findPendingTotp(context.store, context.cipher, session.user.id);
  if (pending === undefined) return c.redirect(SECURITY, 303);
  const again = askToSignInAgain(request, context, `${SECURITY}/totp`);
  if (again !== undefined) return again;
  const { seed } = pending;
  const uri = formatTotpUri(seed, { issuer: messages.product, login: session.user.login });
  const content = renderTotpSetup(messages, { csrfToken: session.csrfToken, seed, uri, mistake });
  const at = `${SECURITY}/totp`;
  return show({ title: messages.security.totpStart, here: SECURITY, at, content }, { status: mistake ? 422 : 200 });
}

function addStop({ context, form }: AccountPages): void {
  const proven = (path: string, name: SecurityForm, act: (request: PageRequest) => Promise<Response>) =>
    form(path, async (submission) => {
      const messages = readMessages(submission.c);
      const again =
        submission.session.user.passwordChangedAtMs === null && askToSignInAgain(submission, context, SECURITY);
      if (again) return again;
      try {
        await checkCurrentPassword(context, submission, `${name}_password`);
      } catch (error) {
        return showSecurity(context, submission, { mistake: { ...toMistake(messages, error), form: name } });
      }
      return act(submission);
    });

  proven(`${SECURITY}/totp/stop`, 'totp', async ({ c, session }) => {
    const event = { kind: 'totp_disabled', userId: session.user.id, address: clientAddress(c) } as const;
    const { id: userId } = session.user;
    await context.store.call(changeAndRecord, {
      change: stopTotpStatement(userId),
      statements: [deleteRecoveryCodesStatement(userId), auditStatement(event, context.world.nowMs())],
    });
    return c.redirect(`${SECURITY}?done=totp_stopped`, 303);
  });

  proven(RECOVERY_CODES, 'recovery', async (request) => {
    const { c, session } = request;
    const codes = createRecoveryCodes(context.world);
    const event = { kind: 'recovery_codes_renewed', userId: session.user.id, address: clientAddress(c) } as const;
    const statements = replaceRecoveryCodesStatements(session.user.id, codes);
    const shown = prepareSecret(context, request, { path: RECOVERY_CODES, texts: codes });
    const isRenewed = await context.store.call(changeAndRecord, {
      change: lockTotpStatement(session.user.id),
      statements: [...statements, shown.statement, auditStatement(event, context.world.nowMs())],
    });
    if (!isRenewed) throw new Failure('conflict', 'Cannot make recovery codes: the authenticator app is off');
    return shown.redirect();
  });
}
