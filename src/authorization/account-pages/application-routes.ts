/** Serves the pages of a person's OAuth applications: register, change, rotate secrets, delete. */
import type { Context } from 'hono';
import { Failure } from '../../errors.ts';
import type { HttpEnv } from '../../http/context.ts';
import type { Mistake } from '../../pages/elements.ts';
import { readChange } from '../../pages/forms/form-change.ts';
import { ifThere, readField, toMistake } from '../../pages/page-routes.ts';
import { findDone } from '../../pages/signed-in-pages.ts';
import {
  addSecret,
  createApplication,
  deleteApplication,
  removeSecret,
  updateApplication,
} from '../applications/application.ts';
import type { ApplicationChange, ApplicationForm } from '../applications/application-form.ts';
import { listSecrets } from '../applications/application-secret-store.ts';
import {
  type Application,
  findApplication,
  GRANT_TYPES,
  type GrantType,
  listApplications,
} from '../applications/application-store.ts';
import { readMessages } from '../messages/messages.ts';
import { clientAddress } from '../sign-in/read-client-address.ts';
import type { AccountPages, PageRequest, Submission } from './account-pages.ts';
import {
  type ApplicationValues,
  renderApplication,
  renderApplicationList,
  renderNewApplication,
  valuesOf,
} from './application-pages.ts';
import { redirectWithSecret, takeOnce } from './shown-once.ts';

const HERE = '/account/applications';
const PATH = `${HERE}/:clientId{app_[A-Za-z0-9_-]+}`;
const BLANK: ApplicationValues = {
  name: '',
  homepage: '',
  description: '',
  redirectUris: '',
  isPublic: false,
  mayActAlone: false,
  mayConnectDevices: false,
  authenticatedRefresh: false,
};

export function addApplicationRoutes(pages: AccountPages): void {
  addList(pages);
  addDetail(pages);
  addSecrets(pages);
}

function addList({ context, page, longForm }: AccountPages): void {
  page(HERE, async ({ c, session, show }) => {
    const messages = readMessages(c);
    const applications = await listApplications(context.store, session.user.id);
    const content = renderApplicationList(
      messages,
      applications,
      findDone(c, { deleted: messages.applications.deleted }),
    );
    return show({ title: messages.applications.title, here: HERE, content });
  });

  page(`${HERE}/new`, (request) => showNew(request, BLANK));

  longForm(HERE, async (submission) => {
    const messages = readMessages(submission.c);
    const values = readValues(submission.form);
    const actor = actorOf(submission);
    try {
      const created = await createApplication(context.store, context.world, { form: toForm(values), actor });
      const path = `${HERE}/${created.application.clientId}`;
      if (created.clientSecret === undefined) return submission.c.redirect(`${path}?done=created`, 303);
      return await redirectWithSecret(context, submission, { path, texts: [created.clientSecret], done: 'created' });
    } catch (error) {
      return showNew(submission, values, toMistake(messages, error));
    }
  });
}

function showNew({ c, session, show }: PageRequest, values: ApplicationValues, mistake?: Mistake): Promise<Response> {
  const messages = readMessages(c);
  const content = renderNewApplication(messages, { values, mistake, csrfToken: session.csrfToken });
  return show(
    { title: messages.applications.createTitle, here: HERE, at: `${HERE}/new`, content },
    { status: mistake ? 422 : 200 },
  );
}

function addDetail({ context, page, form, longForm }: AccountPages): void {
  page(PATH, (request) => showDetail(context, request));
  longForm(PATH, (submission) => change(context, submission));
  form(`${PATH}/delete`, async (submission) => {
    const refused = await ifThere(() => remove(context, submission));
    return refused ?? submission.c.redirect(`${HERE}?done=deleted`, 303);
  });
}

async function showDetail(context: AccountPages['context'], request: PageRequest): Promise<Response> {
  const messages = readMessages(request.c);
  const application = await findOwn(context, request);
  const { created, saved, secretRemoved } = messages.applications;
  const { texts: secrets, isSpent } = await takeOnce(context, request);
  const done = findDone(request.c, { created, saved, secret_removed: secretRemoved });
  return showApplication(context, request, {
    application,
    secret: secrets[0],
    done: isSpent ? messages.shownBefore : done,
  });
}

async function change(context: AccountPages['context'], submission: Submission): Promise<Response> {
  const messages = readMessages(submission.c);
  const application = await findOwn(context, submission);
  const { isPublic } = application;
  const sent = { ...readValues(submission.form), isPublic };
  const { changed, values, isOutdated } = readChange(submission.form, { sent, stored: valuesOf(application) });
  if (isOutdated) return showRefused(context, submission, { values, mistake: { message: messages.changedMeanwhile } });
  try {
    const actor = actorOf(submission);
    const change = toChange(changed, values, application);
    await updateApplication(context.store, context.world, { application, change, actor });
  } catch (error) {
    return showRefused(context, submission, { values, mistake: toMistake(messages, error) });
  }
  return submission.c.redirect(`${HERE}/${application.clientId}?done=saved`, 303);
}

/** Returns the page with the mistake, or undefined if the application was deleted. */
async function remove(context: AccountPages['context'], submission: Submission): Promise<Response | undefined> {
  const messages = readMessages(submission.c);
  const application = await findOwn(context, submission);
  if (readField(submission.form, 'confirm').trim() !== application.name) {
    const mistake = { message: messages.applications.deleteWrong, field: 'confirm' };
    return showApplication(context, submission, { application, mistake });
  }
  await deleteApplication(context.store, context.world, { application, actor: actorOf(submission) });
  return undefined;
}

function addSecrets({ context, form }: AccountPages): void {
  form(`${PATH}/secrets`, async (submission) => {
    const messages = readMessages(submission.c);
    const application = await findOwn(context, submission);
    try {
      const secret = await addSecret(context.store, context.world, { application, actor: actorOf(submission) });
      const path = `${HERE}/${application.clientId}`;
      return await redirectWithSecret(context, submission, { path, texts: [secret] });
    } catch (error) {
      return showRefused(context, submission, { mistake: toMistake(messages, error) });
    }
  });

  form(`${PATH}/secrets/delete`, async (submission) => {
    const messages = readMessages(submission.c);
    const application = await findOwn(context, submission);
    // A page opened before an upgrade sends only the slot, which may hold another secret by now.
    if (!submission.form.has('created_at'))
      return showRefused(context, submission, { mistake: { message: messages.applications.secretUnnamed } });
    const readNumber = (name: string) => Number(readField(submission.form, name));
    const named = { slot: readNumber('slot'), createdAtMs: readNumber('created_at') };
    const secret = { application, ...named, actor: actorOf(submission) };
    try {
      await ifThere(() => removeSecret(context.store, context.world, secret));
    } catch (error) {
      return showRefused(context, submission, { mistake: toMistake(messages, error) });
    }
    return submission.c.redirect(`${HERE}/${application.clientId}?done=secret_removed`, 303);
  });
}

/** Throws `not_found` for another person's application, as for an unknown application. */
async function findOwn(context: AccountPages['context'], { c, session }: PageRequest): Promise<Application> {
  const messages = readMessages(c);
  const application = await findApplication(context.store, c.req.param('clientId') ?? '');
  if (application === undefined || application.ownerId !== session.user.id)
    throw new Failure('not_found', messages.error.notFound);
  return application;
}

function actorOf({ c, session }: { readonly c: Context<HttpEnv>; readonly session: PageRequest['session'] }) {
  return { userId: session.user.id, address: clientAddress(c) };
}

interface ApplicationShown {
  readonly application: Application;
  readonly values?: ApplicationValues | undefined;
  readonly secret?: string | undefined;
  readonly done?: string | undefined;
  readonly mistake?: Mistake | undefined;
}

async function showApplication(
  context: AccountPages['context'],
  { c, session, show }: PageRequest,
  shown: ApplicationShown,
): Promise<Response> {
  const messages = readMessages(c);
  const { application, values = valuesOf(application) } = shown;
  const secrets = await listSecrets(context.store, application.clientId);
  const content = renderApplication(messages, {
    ...shown,
    issuer: context.baseUrl,
    values,
    secrets,
    csrfToken: session.csrfToken,
  });
  const at = `${HERE}/${application.clientId}`;
  return show({ title: application.name, here: HERE, at, content }, { status: shown.mistake ? 422 : 200 });
}

/** Reads the application again: it may have been changed or deleted meanwhile. */
async function showRefused(
  context: AccountPages['context'],
  submission: Submission,
  shown: Omit<ApplicationShown, 'application'>,
): Promise<Response> {
  return showApplication(context, submission, { ...shown, application: await findOwn(context, submission) });
}

function readValues(form: URLSearchParams): ApplicationValues {
  return {
    name: readField(form, 'name'),
    homepage: readField(form, 'homepage'),
    description: readField(form, 'description'),
    redirectUris: readField(form, 'redirect_uri'),
    isPublic: readField(form, 'kind') === 'public',
    mayActAlone: form.has('client_credentials'),
    mayConnectDevices: form.has('device'),
    authenticatedRefresh: form.has('authenticated_refresh'),
  };
}

function toForm(values: ApplicationValues): ApplicationForm {
  const redirectUris = splitUris(values);
  const { name, homepage, description, isPublic, authenticatedRefresh } = values;
  const grants = readGrants(values, { hadRedirectUris: false });
  return {
    name,
    homepage,
    description,
    isPublic,
    redirectUris,
    grantTypes: GRANT_TYPES.filter((grant) => grant === 'refresh_token' || grants[grant] === true),
    authenticatedRefresh: authenticatedRefresh && !isPublic,
  };
}

/** Fields that the form does not show, or that the person did not change, stay as they are stored. */
function toChange(
  changed: Partial<ApplicationValues>,
  values: ApplicationValues,
  stored: Application,
): ApplicationChange {
  const { name, homepage, description, authenticatedRefresh } = changed;
  const grants = readGrants(values, { hadRedirectUris: stored.redirectUris.length > 0 });
  return {
    name,
    homepage,
    description,
    redirectUris: changed.redirectUris === undefined ? undefined : splitUris(values),
    grants: {
      ...grants,
      client_credentials: changed.mayActAlone === undefined ? undefined : grants.client_credentials,
      device_code: changed.mayConnectDevices === undefined ? undefined : grants.device_code,
    },
    authenticatedRefresh: authenticatedRefresh && !values.isPublic,
  };
}

function splitUris({ redirectUris }: Pick<ApplicationValues, 'redirectUris'>): string[] {
  return redirectUris.split(/\s+/).filter((uri) => uri !== '');
}

/** The grants that the form adds and removes. A first redirect URI adds `authorization_code`; removing the last one removes it. */
function readGrants(
  values: ApplicationValues,
  { hadRedirectUris }: { readonly hadRedirectUris: boolean },
): Partial<Record<GrantType, boolean>> {
  const others = {
    client_credentials: values.mayActAlone && !values.isPublic,
    device_code: values.mayConnectDevices,
  };
  const hasRedirectUris = splitUris(values).length > 0;
  if (hasRedirectUris && hadRedirectUris) return others;
  // Without a redirect URI and another grant the application could never get a token: this grant makes the check refuse it.
  const needsRedirectUri = !others.client_credentials && !others.device_code;
  return { ...others, authorization_code: hasRedirectUris || needsRedirectUri };
}
