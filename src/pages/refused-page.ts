/** Shows the refusal of a form on a page of its own after a redirect (303), so that a reload posts nothing again. */
import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Context } from 'hono';
import type { Failure } from '../errors.ts';
import type { HttpEnv } from '../http/context.ts';
import type { RespondPage } from '../http/mount.ts';
import { isFromOtherSite, isOriginRefusal } from './form-origin.ts';
import { renderErrorPage } from './notice-pages.ts';
import { respondPage } from './page-response.ts';
import { respondRefusal, showRefusal, toPageRefusal } from './page-routes.ts';
import {
  REFUSED_PARAMETER,
  type RefusedForm,
  type RefusedFormDependencies,
  readRefused,
  redirectRefused,
} from './refused-form.ts';
import { type FrameTexts, readFrameTexts } from './texts.ts';

export interface RefusedPageDependencies extends RefusedFormDependencies {
  /** The URL at which browsers reach the pages. */
  readonly baseUrl: string;
  /** Makes the token that binds a form to this browser, and sets its cookie. */
  readonly issueFormToken: (c: Context<HttpEnv>) => string;
}

const PATH = '/refused';
/**
 * Names the refusal of a form from another site, in place of an encrypted refusal, which only one browser can read. Anyone can make
 * such an address for any browser, so it only selects one of a few texts, and shows nothing that was sent.
 */
const OTHER_SITE = 'another-site';
const STATUS_PREFIX = 'status-';
/** Bounds the address, since a refusal can quote what was sent. */
const MAX_MESSAGE_LENGTH = 1000;

/** Shows the refusal of a GET, and redirects the refusal of a form with 303. */
export function createRefusalResponder(dependencies: RefusedPageDependencies): RespondPage {
  return (failure, status, c) => {
    if (c.req.method !== 'POST' || isWithoutRoute(failure)) return respondRefusal(failure, status, c);
    // Browsers send no cookie of ours with such a form. A new cookie would replace it, so forms that are open would be refused.
    if (isFromOtherSite(c, dependencies.baseUrl)) {
      const reason = isOriginRefusal(failure) ? OTHER_SITE : STATUS_PREFIX + status;
      return c.redirect(`${PATH}?${REFUSED_PARAMETER}=${reason}`, 303);
    }
    const { message, traceId } = toPageRefusal(failure, status, c);
    const refused = {
      message: message.slice(0, MAX_MESSAGE_LENGTH),
      status: status as RefusedForm['status'],
      retryAfterSeconds: failure.details.retryAfterSeconds,
      values: traceId === undefined ? undefined : { trace_id: traceId },
    };
    return redirectRefused(dependencies, c, { page: PATH, browser: dependencies.issueFormToken(c), refused });
  };
}

/** Adds the page that the redirect leads to. Mount it once. */
export function addRefusedPage(routes: OpenAPIHono<HttpEnv>, dependencies: RefusedPageDependencies): void {
  routes.get(PATH, (c) => {
    const texts = readFrameTexts(c);
    const ofOtherSite = findRefusalOfOtherSite(texts, c.req.query(REFUSED_PARAMETER));
    if (ofOtherSite !== undefined)
      return respondPage(c, renderErrorPage(texts, ofOtherSite), { status: ofOtherSite.status });
    const refused = readRefused(dependencies, c, dependencies.issueFormToken(c));
    if (refused === undefined)
      return respondPage(c, renderErrorPage(texts, { message: texts.error.refusalGone }), { status: 410 });
    return showRefusal(c, { ...refused, traceId: refused.values?.trace_id });
  });
}

interface OtherSiteRefusal {
  readonly message: string;
  readonly status: RefusedForm['status'];
}

function findRefusalOfOtherSite(texts: FrameTexts, reason: string | undefined): OtherSiteRefusal | undefined {
  const t = texts.error.fromOtherSite;
  const known: readonly (readonly [sent: number, shown: RefusedForm['status'], message: string])[] = [
    [400, 400, t.invalid],
    [413, 413, t.tooLarge],
    [429, 429, t.tooMany],
    [500, 500, t.failed],
    [503, 503, t.busy],
    [504, 503, t.busy],
  ];
  if (reason === OTHER_SITE) return { status: 403, message: texts.error.otherSite };
  const found = known.find(([sent]) => reason === STATUS_PREFIX + sent);
  if (found !== undefined) return { status: found[1], message: found[2] };
  return reason?.startsWith(STATUS_PREFIX) ? { status: 400, message: t.invalid } : undefined;
}

/** Whether the address has no route, or not with this method: no form of ours leads there. */
function isWithoutRoute({ details }: Failure): boolean {
  return details.errorCodeName === 'NOT_PATH' || details.errorCodeName === 'METHOD_NOT_ALLOWED';
}
