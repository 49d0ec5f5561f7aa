/** Serves the pages of webhooks: create, change, test, enable, disable, rotate the secret, delete. */

import type { Mistake } from '../../pages/elements.ts';
import { readChange } from '../../pages/forms/form-change.ts';
import { ifThere, readField } from '../../pages/page-routes.ts';
import { findDone } from '../../pages/signed-in-pages.ts';
import {
  callerOf,
  type PageRequest,
  type SignedInPages,
  type Submission,
  showView,
  tryForm,
} from '../frame/console.ts';
import { type ConsoleTexts, readTexts } from '../texts/texts.ts';
import { blankHook, type HookValues, readHookValues, renderHookForm, toParameters, valuesOfHook } from './hook-form.ts';
import { pathOfHook, renderHook, renderHooks } from './hook-pages.ts';
import type { HookAdmin, OpenHook, RepositoryAdmin } from './hook-views.ts';
import { pathOfRepository } from './repository-pages.ts';
import { findRepositoryDone, WEBHOOKS } from './repository-routes.ts';

const REPOSITORY = `${WEBHOOKS}/:owner/:repo`;
export const HOOK = `${REPOSITORY}/:id{[0-9]{1,15}}`;
const RECENT = 5;

/** A hook, and the repository through which it was found. */
export interface Reached {
  readonly repository: RepositoryAdmin['repository'];
  readonly hook: OpenHook;
}

export interface HookRoutesDependencies {
  readonly admin: HookAdmin;
  /** A random secret to prefill the form of a new hook. */
  readonly createKey: () => string;
}

export function addHookRoutes(signedIn: SignedInPages, dependencies: HookRoutesDependencies): void {
  addList(signedIn, dependencies);
  addHook(signedIn, dependencies.admin);
  addChange(signedIn, dependencies.admin);
  addActions(signedIn, dependencies.admin);
}

function openRepository(admin: HookAdmin, request: PageRequest): Promise<RepositoryAdmin> {
  const { owner = '', repo = '' } = request.c.req.param();
  return admin.openRepository(callerOf(request), owner, repo);
}

export async function reachHook(admin: HookAdmin, request: PageRequest): Promise<Reached> {
  const opened = await openRepository(admin, request);
  return { repository: opened.repository, hook: await opened.openHook(request.c.req.param('id') ?? '') };
}

function addList({ page, longForm }: SignedInPages, { admin, createKey }: HookRoutesDependencies): void {
  page(REPOSITORY, async (request) => {
    const texts = readTexts(request.c);
    const { repository, listHooks } = await openRepository(admin, request);
    const content = renderHooks(texts, { repository, hooks: await listHooks(), done: findRepositoryDone(request) });
    return showView(request, { title: repository.full_name, here: WEBHOOKS, content });
  });

  page(`${REPOSITORY}/new`, async (request) => {
    const { repository } = await openRepository(admin, request);
    return showForm(admin, request, { repository, values: blankHook(createKey()) });
  });

  longForm(REPOSITORY, async (submission) => {
    const texts = readTexts(submission.c);
    const opened = await openRepository(admin, submission);
    const sent = readHookValues(submission.form);
    const values = { ...sent, key: sent.key || createKey() };
    return await tryForm(
      texts,
      async () => {
        const { id } = await opened.createHook(toParameters(values));
        return submission.c.redirect(`${pathOfHook(opened.repository, id)}?done=created`, 303);
      },
      (mistake) => showForm(admin, submission, { repository: opened.repository, values, mistake }),
    );
  });
}

interface FormShown {
  readonly repository: RepositoryAdmin['repository'];
  readonly values: HookValues;
  readonly hookId?: number;
  readonly stored?: HookValues;
  readonly mistake?: Mistake | undefined;
}

function showForm(admin: HookAdmin, request: PageRequest, shown: FormShown): Promise<Response> {
  const texts = readTexts(request.c);
  const content = renderHookForm(texts, { ...shown, profiles: admin.profiles, csrfToken: request.session.csrfToken });
  const title = shown.hookId === undefined ? texts.hooks.create : texts.hooks.editTitle(shown.hookId);
  const base = pathOfRepository(shown.repository);
  const at = shown.hookId === undefined ? `${base}/new` : `${base}/${shown.hookId}/change`;
  return showView(request, { title, here: WEBHOOKS, at, content, mistake: shown.mistake });
}

function addHook({ livePage }: SignedInPages, admin: HookAdmin): void {
  livePage(HOOK, async (request) => showHook(request, await reachHook(admin, request)));
}

interface Refused {
  readonly mistake: Mistake;
  readonly sent: URLSearchParams;
}

async function showHook(request: PageRequest, { repository, hook }: Reached, refused?: Refused): Promise<Response> {
  const texts = readTexts(request.c);
  const t = texts.hooks;
  const [view, recent] = await Promise.all([hook.describe(), hook.listDeliveries({ per_page: RECENT })]);
  const replayed = request.c.req.query('replayed') ?? '';
  const done = /^\d{1,9}$/.test(replayed)
    ? t.replayed(Number(replayed))
    : findDone(request.c, {
        created: t.created,
        saved: t.saved,
        enabled: t.enabled,
        disabled: t.disabledNow,
        key: t.keyChanged,
        keyless: t.keyRemoved,
        'sent-waiting': t.waitingSent,
      });
  const { csrfToken, user } = request.session;
  const content = renderHook(texts, {
    repository,
    hook: view,
    deliveries: recent.deliveries,
    testEvents: hook.testEvents,
    done,
    ...refused,
    csrfToken,
    isAdmin: user.isAdmin,
  });
  return showView(request, {
    title: t.number(view.id),
    here: WEBHOOKS,
    at: pathOfHook(repository, view.id),
    content,
    mistake: refused?.mistake,
  });
}

function addChange({ page, longForm }: SignedInPages, admin: HookAdmin): void {
  page(`${HOOK}/change`, async (request) => {
    const { repository, hook } = await reachHook(admin, request);
    const view = await hook.describe();
    const stored = valuesOfHook(view);
    return showForm(admin, request, { repository, hookId: view.id, stored, values: stored });
  });

  longForm(`${HOOK}/change`, async (submission) => {
    const texts = readTexts(submission.c);
    const { repository, hook } = await reachHook(admin, submission);
    const view = await hook.describe();
    const stored = valuesOfHook(view);
    const sent = readHookValues(submission.form);
    const { changed, values, isOutdated } = readChange(submission.form, { sent, stored });
    const showAgain = (mistake: Mistake) =>
      showForm(admin, submission, { repository, hookId: view.id, stored, values, mistake });
    if (isOutdated) return showAgain({ message: texts.changedMeanwhile });
    return await tryForm(
      texts,
      async () => {
        await hook.change(toParameters(changed));
        return submission.c.redirect(`${pathOfHook(repository, view.id)}?done=saved`, 303);
      },
      showAgain,
    );
  });
}

type Action = (reached: Reached & { readonly path: string }, submission: Submission) => Promise<string>;

/** The buttons on the page of a hook: each does its work and resolves with the page to redirect to. */
const ACTIONS: Readonly<Record<string, Action>> = {
  test: async ({ hook, path }, { form }) => {
    const deliveryId = await hook.test({ event: readField(form, 'event') });
    return `${path}/deliveries/${deliveryId}?done=tested`;
  },
  enable: async ({ hook, path }) => {
    await hook.switch(true);
    return `${path}?done=enabled`;
  },
  disable: async ({ hook, path }) => {
    await hook.switch(false);
    return `${path}?done=disabled`;
  },
  key: async ({ hook, path }, submission) => {
    await hook.rotateKey(readField(submission.form, 'password'));
    return `${path}?done=key`;
  },
  'remove-key': async ({ hook, path }) => {
    await hook.removeKey();
    return `${path}?done=keyless`;
  },
  'send-waiting': async ({ hook, path }) => {
    await hook.sendWaiting();
    return `${path}?done=sent-waiting`;
  },
  replay: async ({ hook, path }, submission) => {
    const since = toUtcTime(readTexts(submission.c), readField(submission.form, 'since'));
    return `${path}?replayed=${await hook.replaySince({ since })}`;
  },
};

function addActions({ form }: SignedInPages, admin: HookAdmin): void {
  for (const [name, act] of Object.entries(ACTIONS))
    form(`${HOOK}/${name}`, (submission) => runAction(admin, submission, act));
  form(`${HOOK}/delete`, async (submission) => {
    const { repository } = await openRepository(admin, submission);
    const refused = await ifThere(() => deleteHook(admin, submission));
    return refused ?? submission.c.redirect(`${pathOfRepository(repository)}?done=deleted`, 303);
  });
}

/** Redirects, or shows the error on the page of the hook. */
async function runAction(admin: HookAdmin, submission: Submission, act: Action): Promise<Response> {
  const texts = readTexts(submission.c);
  const reached = await reachHook(admin, submission);
  const path = `${pathOfRepository(reached.repository)}/${submission.c.req.param('id')}`;
  return await tryForm(
    texts,
    async () => submission.c.redirect(await act({ ...reached, path }, submission), 303),
    (mistake) => showHook(submission, reached, { mistake, sent: submission.form }),
  );
}

/** Returns the page of the hook with the error; undefined if the hook has been deleted. */
async function deleteHook(admin: HookAdmin, submission: Submission): Promise<Response | undefined> {
  const texts = readTexts(submission.c);
  const reached = await reachHook(admin, submission);
  if (readField(submission.form, 'confirm') !== 'yes')
    return showHook(submission, reached, {
      mistake: { message: texts.hooks.deleteUnconfirmed, field: 'confirm' },
      sent: submission.form,
    });
  await reached.hook.remove();
  return undefined;
}

/** Converts the value of a date and time field to a time of the API. Passes any other text on, which the API refuses. */
export function toUtcTime({ format }: ConsoleTexts, text: string): string {
  return format.readInstant(text)?.toISOString() ?? text;
}
