import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { Failure, isFailure } from '../errors.ts';
import type { HttpEnv } from '../http/context.ts';
import { respondToError } from '../http/failure-response.ts';
import { readText } from '../http/limit-body.ts';
import type { RespondPage } from '../http/mount.ts';
import { FORM_MAX_BYTES, parsePairs } from '../http/parser-limits.ts';
import { createRoutes } from '../http/routes.ts';
import type { Mistake } from './elements.ts';
import { renderErrorPage } from './notice-pages.ts';
import { type PageOptions, respondPage } from './page-response.ts';
import { type FrameTexts, readFrameTexts } from './texts.ts';

/** Routes whose refusals are pages for a person. */
export function createPageRoutes(): OpenAPIHono<HttpEnv> {
  const routes = createRoutes();
  routes.onError((error, c) => respondFailurePage(c, error));
  return routes;
}

export function respondFailurePage(c: Context<HttpEnv>, error: unknown): Response | Promise<Response> {
  return respondToError(error, { errors: 'page', respondPage: respondRefusal }, c);
}

/** A refusal in the frame of the pages; the mount at `/` shows every other address in it too. */
export const respondRefusal: RespondPage = (failure, status, c) => {
  const texts = readFrameTexts(c);
  const isMissing = status === 404;
  const page = renderErrorPage(texts, {
    title: isMissing ? texts.error.notFound : undefined,
    message:
      isMissing && failure.details.errorCodeName ? texts.error.notFound : texts.explain(toSentence(failure.message)),
    traceId: isMissing ? undefined : c.get('traceId'),
  });
  return respondPage(c, page, { status: status as PageOptions['status'] });
};

/** The fields of a posted form. Throws `invalid` for any other kind of body. */
export async function readForm(c: Context<HttpEnv>): Promise<URLSearchParams> {
  const type = c.req.header('content-type') ?? '';
  if (!type.startsWith('application/x-www-form-urlencoded'))
    throw new Failure('invalid', 'Cannot read the form: it must be sent as application/x-www-form-urlencoded');
  return parsePairs(await readText(c.req, FORM_MAX_BYTES));
}

export function readField(form: URLSearchParams, name: string): string {
  return form.get(name) ?? '';
}

/** What a refused form shows; anything else goes on being thrown. */
export function toMistake(texts: FrameTexts, error: unknown): Mistake {
  if (isFailure(error) && (error.code === 'invalid' || error.code === 'conflict'))
    return { message: texts.explain(toSentence(error.message)), field: error.details.field };
  throw error;
}

export function toSentence(message: string): string {
  return /[.!?]$/.test(message) ? message : `${message}.`;
}
