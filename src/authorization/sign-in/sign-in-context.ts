/** Creates what all ways to sign in share: the session, the CSRF check of every form, and the end of every sign-in. */
import type { Context } from 'hono';
import type { Store } from '../../database/store.ts';
import type { SecretCipher } from '../../encryption/secret-cipher.ts';
import { isFailure } from '../../errors.ts';
import type { HttpEnv } from '../../http/context.ts';
import type { RespondPage } from '../../http/mount.ts';
import type { FindUnknownRepositories } from '../../identity.ts';
import type { Mailer } from '../../mail/mailer.ts';
import { checkOrigin } from '../../pages/form-origin.ts';
import { preferLanguage } from '../../pages/locale.ts';
import { toMistake } from '../../pages/page-routes.ts';
import type { RefusedForm } from '../../pages/refused-form.ts';
import { createRefusalResponder } from '../../pages/refused-page.ts';
import type { SessionUse } from '../../pages/signed-in-pages.ts';
import type { World } from '../../world.ts';
import { createRefusalLog, type RefusalLog } from '../accounts/refusal-log.ts';
import {
  createSession,
  endSessionStatement,
  findSession,
  type SignInMethod,
  type StoredSession,
} from '../accounts/session-store.ts';
import type { User } from '../accounts/user-store.ts';
import type { Messages } from '../messages/messages.ts';
import type { CountToken } from '../tokens/token-metrics.ts';
import { type Cookies, checkFormToken, createCookies, type FormFields, formToken } from './cookies.ts';
import type { Flow } from './flow.ts';
import { rememberDevice } from './known-device.ts';
import { isBusy } from './password-hash-queue.ts';
import { clientAddress } from './read-client-address.ts';
import { createUpstreamProvider, type UpstreamConfig, type UpstreamProvider } from './upstream.ts';

/** A signed-in browser. */
export interface Session extends StoredSession {
  /** The value of the hidden field `csrf_token` in every form. */
  readonly csrfToken: string;
}

export interface SignInContext {
  readonly store: Store;
  readonly world: World;
  readonly cipher: SecretCipher;
  /** The URL at which browsers reach these pages. */
  readonly baseUrl: string;
  readonly cookies: Cookies;
  /** The OpenID provider that people may also sign in with; undefined without one. */
  readonly upstream: UpstreamProvider | undefined;
  /** Undefined: mail is off. */
  readonly mailer: Mailer | undefined;
  /** Records failed sign-ins. */
  readonly refusals: RefusalLog;
  readonly countToken: CountToken;
  /** Absent: nothing is known about repositories. */
  readonly findUnknownRepositories?: FindUnknownRepositories | undefined;
  /** Finds the session, and marks it as seen unless an open page only refreshes itself (`watched`). */
  readonly currentSession: (c: Context<HttpEnv>, use?: SessionUse) => Promise<Session | undefined>;
  /** Throws `forbidden` unless the form came from a page of this session and of this site. */
  readonly checkForm: (c: Context<HttpEnv>, form: FormFields) => void;
  /** Returns the token of a form that is shown before the sign-in, and sets its cookie. */
  readonly issueFormToken: (c: Context<HttpEnv>) => string;
  /** Checks a form that was shown before the sign-in, as `checkForm` does. */
  readonly checkSignedOutForm: (c: Context<HttpEnv>, form: FormFields) => void;
  /** Responds to a refusal with a page; to that of a form, with a redirect (303) to a page. */
  readonly respondRefusal: RespondPage;
  readonly finishSignIn: (c: Context<HttpEnv>, proof: Proof) => Promise<Response>;
}

/** A person who has authenticated. */
export interface Proof {
  readonly user: User;
  readonly method: SignInMethod;
  /** When the person authenticated; now if absent. */
  readonly authTimeMs?: number | undefined;
  readonly flow: Pick<Flow, 'returnTo'>;
}

export interface SignInContextDependencies {
  readonly store: Store;
  readonly world: World;
  readonly cipher: SecretCipher;
  readonly baseUrl: string;
  readonly upstream?: UpstreamConfig | undefined;
  /** Undefined: mail is off. */
  readonly mailer?: Mailer | undefined;
  /** Shared with the OAuth endpoints; created here if absent. */
  readonly refusals?: RefusalLog;
  readonly countToken: CountToken;
  /** Absent: nothing is known about repositories. */
  readonly findUnknownRepositories?: FindUnknownRepositories | undefined;
}

export function createSignInContext(dependencies: SignInContextDependencies): SignInContext {
  const { store, world, cipher, baseUrl } = dependencies;
  const cookies = createCookies(baseUrl);
  const currentSession: SignInContext['currentSession'] = async (c, use) => {
    const token = cookies.read(c, 'session');
    if (token === undefined) return undefined;
    const session = await findSession(store, token, world.nowMs(), use);
    if (session === undefined) return undefined;
    preferLanguage(c, session.user.language);
    return { ...session, csrfToken: formToken(token) };
  };
  const issueFormToken = (c: Context<HttpEnv>): string => {
    const known = cookies.read(c, 'form');
    const value = known ?? Buffer.from(world.randomBytes(24)).toString('base64url');
    if (known === undefined) cookies.write(c, 'form', { value });
    return formToken(value);
  };
  return {
    ...dependencies,
    mailer: dependencies.mailer,
    upstream: dependencies.upstream && createUpstreamProvider(dependencies.upstream),
    cookies,
    refusals: dependencies.refusals ?? createRefusalLog(dependencies),
    currentSession,
    checkForm(c, form) {
      checkOrigin(c, baseUrl);
      checkFormToken(form, cookies.read(c, 'session'));
    },
    issueFormToken,
    respondRefusal: createRefusalResponder({ cipher, world, baseUrl, issueFormToken }),
    checkSignedOutForm(c, form) {
      checkOrigin(c, baseUrl);
      checkFormToken(form, cookies.read(c, 'form'));
    },
    async finishSignIn(c, { user, method, authTimeMs, flow }) {
      const address = clientAddress(c);
      const userAgent = c.req.header('user-agent') ?? '';
      // Always creates a new session: a session id planted before the sign-in is useless after it (session fixation).
      const before = await currentSession(c);
      const ends = before === undefined ? [] : [endSessionStatement(before.id, before.user.id)];
      const session = { user, method, authTimeMs, address, userAgent, statements: ends };
      const { token } = await createSession(store, world, session);
      cookies.write(c, 'session', { value: token });
      rememberDevice({ cipher, world, cookies }, c, user.login);
      cookies.drop(c, 'form');
      cookies.drop(c, 'step');
      // 303: the browser continues with GET, and does not post the password to the next page (RFC 9700 §4.12).
      return c.redirect(flow.returnTo, 303);
    },
  };
}

/** Returns the refusal of a form that has to wait. Throws the error again if it has no `retryAfterSeconds`. */
export function toRefusedWait(messages: Messages, error: unknown): RefusedForm {
  const retryAfterSeconds = isFailure(error) ? error.details.retryAfterSeconds : undefined;
  if (retryAfterSeconds === undefined) throw error;
  if (isBusy(error)) return { message: messages.signIn.busy(retryAfterSeconds), status: 503, retryAfterSeconds };
  return { message: messages.signIn.wait(retryAfterSeconds), status: 429, retryAfterSeconds };
}

/** Returns the refusal of a form that sets a password. Throws any other error again. */
export function toRefusedPassword(messages: Messages, error: unknown): RefusedForm {
  return isBusy(error) ? toRefusedWait(messages, error) : { ...toMistake(messages, error), status: 422 };
}
