/** Lets signed-in people in to the pages, sends others to the sign-in, and chooses the navigation. */
import type { Context } from 'hono';
import type { SecretCipher } from '../../encryption/secret-cipher.ts';
import type { HttpEnv } from '../../http/context.ts';
import { findPathBack, isFromOtherSite } from '../../pages/form-origin.ts';
import type { NavigationSection } from '../../pages/navigation.ts';
import type { SessionGuard } from '../../pages/signed-in-pages.ts';
import type { SignedInUser } from '../../pages/signed-in-user.ts';
import { chooseMessages, type Messages } from '../messages/messages.ts';
import { type Again, createFlow, formatFlow, SESSION_ENDED } from '../sign-in/flow.ts';
import type { Session, SignInContext } from '../sign-in/sign-in-context.ts';
import { findAdvice } from './advice.ts';
import { keepPage, takePage } from './kept-page.ts';

type ListSections = SessionGuard['listSections'];

/** `listMore`: lists navigation sections of pages that other areas serve. */
export function createSessionGuard(context: SignInContext, listMore: ListSections = () => []): SessionGuard<Session> {
  return {
    findSignedInUser: context.currentSession,
    checkForm: context.checkForm,
    respondRefusal: context.respondRefusal,
    askToSignIn: (c, returnTo) => askToSignIn(c, context.cipher, { returnTo }),
    refuseEndedSession: (c) => refuseEndedSession(c, context),
    listSections: (person, locale) => [
      ...listMore(person, locale),
      ...listAccountSections(chooseMessages(locale), person),
    ],
    findAdvice: ({ user }, locale) => findAdvice(chooseMessages(locale), context, user.id),
    keepPage: (session, path, page) => keepPage(context, { sessionId: session.id, path }, page),
    takePage: (session, path, token) => takePage(context, { sessionId: session.id, path }, token),
  };
}

/** Asks to sign in again. A form from another site cannot choose where the sign-in leads or what its page shows. */
function refuseEndedSession(c: Context<HttpEnv>, { baseUrl, cipher }: SignInContext): Response {
  if (isFromOtherSite(c, baseUrl)) return askToSignIn(c, cipher, { returnTo: '/' });
  return askToSignIn(c, cipher, { returnTo: findPathBack(c), done: SESSION_ENDED });
}

interface SignInRequest {
  readonly returnTo: string;
  readonly loginHint?: string;
  readonly again?: Again;
  /** Makes the sign-in page show what happened. */
  readonly done?: typeof SESSION_ENDED;
}

export function askToSignIn(
  c: Context<HttpEnv>,
  cipher: SecretCipher,
  { returnTo, loginHint, again, done }: SignInRequest,
): Response {
  const flow = createFlow(cipher, returnTo, { again });
  return c.redirect(`/sign-in${formatFlow(flow, { login_hint: loginHint, done })}`, 303);
}

function listAccountSections(messages: Messages, { user }: SignedInUser): NavigationSection[] {
  const { nav } = messages;
  const own: NavigationSection[] = [
    {
      title: nav.you,
      entries: [
        { path: '/account', label: nav.profile },
        { path: '/account/security', label: nav.security },
        { path: '/account/sessions', label: nav.sessions },
        { path: '/account/authorizations', label: nav.authorizations },
        { path: '/account/activity', label: nav.activity },
      ],
    },
    {
      title: nav.build,
      entries: [
        { path: '/account/tokens', label: nav.tokens },
        { path: '/account/applications', label: nav.applications },
      ],
    },
  ];
  if (!user.isAdmin) return own;
  return [
    ...own,
    {
      title: nav.administer,
      entries: [
        { path: '/admin/users', label: nav.users },
        { path: '/admin/activity', label: nav.allActivity },
      ],
    },
  ];
}
