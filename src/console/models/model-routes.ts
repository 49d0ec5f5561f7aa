/**
 * Serves the pages of models, where administrators promote versions and roll back. Only administrators may see them, since the served
 * version affects all callers. Names of models may be any text, so they are in the query, not in the path.
 */
import { Failure, isFailure } from '../../errors.ts';
import type { Mistake } from '../../pages/elements.ts';
import { readField } from '../../pages/page-routes.ts';
import { findDone } from '../../pages/signed-in-pages.ts';
import type { World } from '../../world.ts';
import { type PageRequest, type SignedInPages, type Submission, showView, tryForm } from '../frame/console.ts';
import { readTexts } from '../texts/texts.ts';
import { addAccuracyRoutes } from './accuracy-routes.ts';
import { addCapacityRoutes } from './capacity-routes.ts';
import { addEffectRoutes } from './effect-routes.ts';
import { addErrorRoutes } from './error-routes.ts';
import { pathOfModel, renderModel, renderModels, renderPromotion, renderRollback } from './model-pages.ts';
import type { ModelAdmin, ModelView, VersionComparison } from './model-views.ts';
import { addWhatIfRoutes } from './what-if-routes.ts';

export const MODELS = '/models';

export interface ModelRoutesDependencies {
  readonly admin: ModelAdmin;
  readonly world: Pick<World, 'nowMs'>;
}

export function addModelRoutes(
  { page, form }: Pick<SignedInPages, 'page' | 'form'>,
  { admin, world }: ModelRoutesDependencies,
): void {
  const adminPage: typeof page = (path, handle) => page(path, async (request) => handle(checkAdmin(request)));
  const adminForm: typeof form = (path, handle) => form(path, async (request) => handle(checkAdmin(request)));

  adminPage(MODELS, async (request) => {
    const texts = readTexts(request.c);
    return showView(request, {
      title: texts.models.title,
      here: MODELS,
      content: renderModels(texts, await admin.listModels(), admin.listScrapedServers()),
    });
  });
  adminPage(`${MODELS}/model`, async (request) => showModel(request, await admin.readModel(readName(request))));
  addAccuracyRoutes(adminPage, { admin, world });
  addErrorRoutes(adminPage, { admin, world });
  addWhatIfRoutes(adminPage, admin);
  addEffectRoutes(adminPage, admin);
  addCapacityRoutes(adminPage, admin);
  addPromotion({ page: adminPage, form: adminForm }, admin);
  addRollback({ page: adminPage, form: adminForm }, admin);
}

/** Throws `not_found`, not `forbidden`, so that a person without access does not learn that the page exists. */
function checkAdmin<V extends PageRequest>(request: V): V {
  const texts = readTexts(request.c);
  if (!request.session.user.isAdmin) throw new Failure('not_found', texts.error.notFound);
  return request;
}

function readName({ c }: PageRequest): string {
  return c.req.query('name') ?? '';
}

function showModel(request: PageRequest, model: ModelView, mistake?: Mistake): Promise<Response> {
  const texts = readTexts(request.c);
  const done = findDone(request.c, { promoted: texts.models.promoted, rolled_back: texts.models.rolledBack });
  return showView(request, {
    title: model.name,
    here: MODELS,
    at: pathOfModel(model.name),
    content: renderModel(texts, { model, done, mistake }),
    mistake,
  });
}

function addPromotion({ page, form }: Pick<SignedInPages, 'page' | 'form'>, admin: ModelAdmin): void {
  page(`${MODELS}/promote`, async (request) => {
    const texts = readTexts(request.c);
    const model = await admin.readModel(readName(request));
    const version = model.versions.find((candidate) => String(candidate.version) === request.c.req.query('version'));
    if (version === undefined) throw new Failure('not_found', texts.error.notFound);
    const comparison = await compareWithServed(admin, model, version.version);
    const content = renderPromotion(texts, { model, version, comparison, csrfToken: request.session.csrfToken });
    return showView(request, { title: texts.models.promoteTitle(version.id), here: MODELS, content });
  });

  form(`${MODELS}/promote`, (submission) => {
    const name = readField(submission.form, 'name');
    const version = Number(readField(submission.form, 'version'));
    return changeServed(submission, admin, name, async () => {
      await admin.promote(name, version, submission.session.user);
      return 'promoted';
    });
  });
}

/** Undefined when no other version is served, or this program cannot read a version. */
async function compareWithServed(
  admin: ModelAdmin,
  { name, servedVersion }: ModelView,
  version: number,
): Promise<VersionComparison | undefined> {
  if (servedVersion === undefined || servedVersion === version) return undefined;
  try {
    return await admin.compare(name, version, servedVersion);
  } catch (error) {
    if (isFailure(error)) return undefined;
    throw error;
  }
}

function addRollback({ page, form }: Pick<SignedInPages, 'page' | 'form'>, admin: ModelAdmin): void {
  page(`${MODELS}/rollback`, async (request) => {
    const texts = readTexts(request.c);
    const model = await admin.readModel(readName(request));
    const comparison = model.previous === undefined ? undefined : await compareWithServed(admin, model, model.previous);
    const content = renderRollback(texts, { model, comparison, csrfToken: request.session.csrfToken });
    return showView(request, { title: texts.models.rollbackTitle(model.name), here: MODELS, content });
  });

  form(`${MODELS}/rollback`, (submission) => {
    const name = readField(submission.form, 'name');
    return changeServed(submission, admin, name, async () => {
      await admin.rollBack(name, Number(readField(submission.form, 'previous')), submission.session.user);
      return 'rolled_back';
    });
  });
}

/** The version may have been deleted before the form is confirmed. */
async function changeServed(
  submission: Submission,
  admin: ModelAdmin,
  name: string,
  change: () => Promise<string>,
): Promise<Response> {
  const texts = readTexts(submission.c);
  return await tryForm(
    texts,
    async () => submission.c.redirect(`${pathOfModel(name)}&done=${await change()}`, 303),
    async (mistake) => showModel(submission, await admin.readModel(name), mistake),
  ).catch(async (error: unknown) => {
    if (!isFailure(error) || error.code !== 'not_found') throw error;
    return showModel(submission, await admin.readModel(name), { message: texts.explain(`${error.message}.`) });
  });
}
