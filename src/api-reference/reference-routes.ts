/**
 * Serves `/docs/api`: the OpenAPI document as pages that need no script. Each page is rendered once per language, since
 * the document never changes while the process runs.
 */
import type { OpenAPIHono } from '@hono/zod-openapi';
import { html } from 'hono/html';
import type { HttpEnv } from '../http/context.ts';
import { addAssetRoutes, icon, loadAsset, pageScript, styleSheet } from '../pages/assets.ts';
import { addLanguageRoute } from '../pages/language-routes.ts';
import { type Html, renderOpenPage } from '../pages/layout.ts';
import { respondSharedPage } from '../pages/page-response.ts';
import { createPageRoutes } from '../pages/page-routes.ts';
import { renderOperation } from './operation-view.ts';
import { groupByTag, type ReferenceDocument, type ShownOperation, toAnchor } from './reference-document.ts';
import { renderSchema } from './schema-view.ts';
import { type ReferenceTexts, readReferenceTexts } from './texts.ts';
import { renderVerification, VERIFICATION_ID } from './verification-view.ts';

export const REFERENCE_PATH = '/docs/api';
const EVENTS_PATH = `${REFERENCE_PATH}/events`;
const styles = loadAsset(new URL('reference.css', import.meta.url));

/** `baseUrl`: where browsers reach these pages. */
export function createReferenceRoutes(readDocument: () => object, baseUrl: string): OpenAPIHono<HttpEnv> {
  const routes = createPageRoutes();
  const pages = new Map<string, Promise<Uint8Array<ArrayBuffer>>>();
  addAssetRoutes(routes, [styleSheet, pageScript, icon, styles]);
  // Registered after the route of the sign-in, which also stores the choice; a process without a sign-in has only this one.
  addLanguageRoute(routes, { baseUrl });
  const serve = (path: string, render: (texts: ReferenceTexts, document: ReferenceDocument) => Html) =>
    routes.get(path, async (c) => {
      const texts = readReferenceTexts(c);
      const key = `${texts.language} ${path}`;
      const page = pages.get(key) ?? encode(render(texts, readDocument() as ReferenceDocument));
      pages.set(key, page);
      return respondSharedPage(c, await page, { withScript: true });
    });
  serve(REFERENCE_PATH, renderOperations);
  serve(EVENTS_PATH, renderEvents);
  return routes;
}

async function encode(page: Html): Promise<Uint8Array<ArrayBuffer>> {
  return new TextEncoder().encode(String(await page));
}

function renderOperations(texts: ReferenceTexts, { paths, components }: ReferenceDocument): Html {
  const groups = groupByTag(paths);
  const schemas = html`<section><h2 id="schemas">${texts.schemas}</h2>${Object.entries(components.schemas).map(
    ([name, schema]) =>
      html`<details class="operation"><summary><code>${name}</code></summary><div id="schema-${name}">${schema.description === undefined ? '' : html`<p lang="en">${schema.description}</p>`}${renderSchema(texts, schema)}</div></details>`,
  )}</section>`;
  return renderPage(texts, { title: texts.title, lead: texts.lead, groups, end: schemas });
}

function renderEvents(texts: ReferenceTexts, { webhooks }: ReferenceDocument): Html {
  return renderPage(texts, {
    title: texts.events,
    lead: texts.eventsLead,
    groups: groupByTag(webhooks),
    begin: renderVerification(texts),
    security: html`<a href="#${VERIFICATION_ID}">${texts.verification.title}</a>`,
  });
}

interface PageContent {
  readonly title: string;
  readonly lead: string;
  readonly groups: ReadonlyMap<string, readonly ShownOperation[]>;
  readonly begin?: Html;
  readonly end?: Html;
  readonly security?: Html;
}

function renderPage(texts: ReferenceTexts, { title, lead, groups, begin, end, security }: PageContent): Html {
  const sections = [...groups].map(
    ([tag, operations]) =>
      html`<section><h2 id="${toAnchor(tag)}" lang="en">${tag}</h2>${operations.map((operation) => renderOperation(texts, operation, security))}</section>`,
  );
  const content = html`<h1>${title}</h1><p>${lead}</p>
<p><a href="${REFERENCE_PATH}">${texts.operations}</a> · <a href="${EVENTS_PATH}">${texts.events}</a> · <a href="/openapi.json">${texts.download}</a></p>
<nav aria-label="${texts.sections}"><ul class="sections">${begin === undefined ? '' : html`<li><a href="#${VERIFICATION_ID}">${texts.verification.title}</a></li>`}${[...groups.keys()].map((tag) => html`<li><a href="#${toAnchor(tag)}" lang="en">${tag}</a></li>`)}</ul></nav>
${begin ?? ''}${sections}${end ?? ''}`;
  return renderOpenPage(texts, { title, content, styles, withPageScript: true });
}
