/** The first start: no account exists, so a one-time link in the service's output lets the operator create the first. */
import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { Failure } from '../../errors.ts';
import type { HttpEnv } from '../../http/context.ts';
import type { Mistake } from '../../pages/elements.ts';
import { respondPage } from '../../pages/page-response.ts';
import { readField, readForm, toMistake } from '../../pages/page-routes.ts';
import { auditStep } from '../accounts/audit-store.ts';
import { findTicket, issueTicket, takeTicket } from '../accounts/ticket-store.ts';
import { createFirstUser, hasUsers } from '../accounts/user-store.ts';
import { texts } from '../messages/messages.ts';
import { clientAddress } from './client-address.ts';
import { checkNewPassword, hashPassword } from './password.ts';
import type { SignInKit } from './sign-in-kit.ts';
import { renderSetupPage } from './sign-in-page.ts';

const LIFETIME_MS = 24 * 3_600_000;

/** The link that sets up a service without accounts; undefined once an account exists. */
export async function createSetupLink(
  kit: Pick<SignInKit, 'store' | 'world' | 'vault' | 'baseUrl'>,
): Promise<string | undefined> {
  if (await hasUsers(kit.store)) return undefined;
  const token = await issueTicket(kit, 'setup', { content: {}, lifetimeMs: LIFETIME_MS });
  // In the query, which is never logged; a path would be.
  return `${kit.baseUrl}/setup?token=${token}`;
}

export function addSetupRoutes(routes: OpenAPIHono<HttpEnv>, kit: SignInKit): void {
  routes.get('/setup', async (c) => {
    const token = c.req.query('token') ?? '';
    await checkSetupToken(kit, token);
    return showSetup(c, kit, { token, login: '', name: '', email: '' });
  });

  routes.post('/setup', async (c) => {
    const form = await readForm(c);
    kit.checkOpenForm(c, form);
    const token = readField(form, 'token');
    await checkSetupToken(kit, token);
    const given = {
      login: readField(form, 'login').trim(),
      name: readField(form, 'name').trim(),
      email: readField(form, 'email').trim(),
    };
    try {
      return await setUp(c, kit, { ...given, token, password: readField(form, 'password') });
    } catch (error) {
      return showSetup(c, kit, { ...given, token, mistake: toMistake(error) });
    }
  });
}

async function checkSetupToken(kit: SignInKit, token: string): Promise<void> {
  const isLive = (await findTicket(kit, 'setup', token)) !== undefined && !(await hasUsers(kit.store));
  if (!isLive) throw new Failure('forbidden', texts.setup.worthless);
}

async function setUp(
  c: Context<HttpEnv>,
  kit: SignInKit,
  given: { login: string; name: string; email: string; token: string; password: string },
): Promise<Response> {
  const { login, name, email, token, password } = given;
  checkNewPassword(password, { login });
  const passwordHash = await hashPassword(password, { key: 'set-up', isKnown: true });
  const user = await createFirstUser(kit.store, kit.world, {
    login,
    name,
    email: email || null,
    isEmailVerified: email !== '',
    passwordHash,
  });
  await takeTicket(kit, 'setup', token);
  const event = {
    kind: 'user_created',
    userId: user.id,
    address: clientAddress(c),
    details: { by: 'set-up link' },
  } as const;
  const steps = [auditStep(event, kit.world.nowMs())];
  return kit.finishSignIn(c, { user, method: 'setup', flow: { returnTo: '/' }, steps });
}

function showSetup(
  c: Context<HttpEnv>,
  kit: SignInKit,
  shown: { token: string; login: string; name: string; email: string; mistake?: Mistake },
): Promise<Response> {
  const page = renderSetupPage({ ...shown, csrfToken: kit.openForm(c) });
  return respondPage(c, page, { status: shown.mistake ? 422 : 200 });
}
