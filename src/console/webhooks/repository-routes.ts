/** Serves the pages of repositories, which lead to their webhooks. */

import type { Mistake } from '../../pages/elements.ts';
import { readField } from '../../pages/page-routes.ts';
import { findDone } from '../../pages/signed-in-pages.ts';
import {
  callerOf,
  type PageRequest,
  type SignedInPages,
  type Submission,
  showView,
  tryForm,
} from '../frame/console.ts';
import { readTexts } from '../texts/texts.ts';
import type { HookAdmin } from './hook-views.ts';
import { pathOfRepository, type RepositoryValues, renderNewRepository, renderOwners } from './repository-pages.ts';

export const WEBHOOKS = '/webhooks';

export function addRepositoryRoutes({ page, longForm }: SignedInPages, admin: HookAdmin): void {
  page(WEBHOOKS, (request) => showRepositories(admin, request));
  page(`${WEBHOOKS}/new`, (request) => {
    const owner = request.c.req.query('owner') ?? request.session.user.login;
    return showNew(admin, request, { owner, name: '', description: '', isPrivate: false });
  });
  longForm(`${WEBHOOKS}/new`, (submission) => createRepository(admin, submission));
}

async function showRepositories(admin: HookAdmin, request: PageRequest): Promise<Response> {
  const texts = readTexts(request.c);
  const login = request.c.req.query('owner');
  const number = parsePage(request.c.req.query('page'));
  const owners =
    login === undefined
      ? await admin.listOwners(callerOf(request))
      : [await admin.openOwner(callerOf(request), login, number)];
  const content = renderOwners(texts, { owners, page: number, isAlone: login !== undefined });
  return showView(request, { title: texts.repositories.title, here: WEBHOOKS, content });
}

async function createRepository(admin: HookAdmin, submission: Submission): Promise<Response> {
  const texts = readTexts(submission.c);
  const values: RepositoryValues = {
    owner: readField(submission.form, 'owner'),
    name: readField(submission.form, 'name'),
    description: readField(submission.form, 'description'),
    isPrivate: submission.form.has('private'),
  };
  return await tryForm(
    texts,
    async () => {
      const { owner, name, description, isPrivate } = values;
      const parameters = { name, path: name, description, private: isPrivate };
      const created = await admin.createRepository(callerOf(submission), owner, parameters);
      return submission.c.redirect(`${pathOfRepository(created)}?done=created`, 303);
    },
    (mistake) => showNew(admin, submission, values, mistake),
  );
}

async function showNew(
  admin: HookAdmin,
  request: PageRequest,
  values: RepositoryValues,
  mistake?: Mistake,
): Promise<Response> {
  const texts = readTexts(request.c);
  const owners = await admin.listOwners(callerOf(request));
  const content = renderNewRepository(texts, { owners, values, mistake, csrfToken: request.session.csrfToken });
  return showView(request, { title: texts.repositories.create, here: WEBHOOKS, content, mistake });
}

export function findRepositoryDone(request: PageRequest): string | undefined {
  const texts = readTexts(request.c);
  return findDone(request.c, { created: texts.repositories.created, deleted: texts.hooks.deleted });
}

function parsePage(text: string | undefined): number {
  return /^[1-9]\d{0,5}$/.test(text ?? '') ? Number(text) : 1;
}
