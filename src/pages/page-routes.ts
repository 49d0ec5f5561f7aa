/** Creates routes whose refusals are pages for a person. */
import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Context, MiddlewareHandler } from 'hono';
import { Failure, isFailure } from '../errors.ts';
import { FORM_MAX_BYTES, readText } from '../http/body/limit-body.ts';
import type { HttpEnv } from '../http/context.ts';
import { respondToError } from '../http/failure-response.ts';
import type { RespondPage } from '../http/mount.ts';
import { parsePairs } from '../http/parser-limits.ts';
import { createRoutes } from '../http/routes.ts';
import type { Mistake } from './elements.ts';
import { renderErrorPage } from './notice-pages.ts';
import { type PageOptions, respondPage } from './page-response.ts';
import { type FrameTexts, readFrameTexts } from './texts.ts';

/** Routes whose refusals are pages for a person. Routes with forms need a responder that redirects to such a page. */
export function createPageRoutes(respondPage: RespondPage = respondRefusal): OpenAPIHono<HttpEnv> {
  const routes = createRoutes();
  routes.onError((error, c) => respondToError(error, { errors: 'page', respondPage }, c));
  return routes;
}

/** The parts of a refusal that a page shows. */
export interface PageRefusal {
  readonly message: string;
  readonly status: number;
  readonly traceId?: string | undefined;
}

/** Shows a refusal in the frame of the pages; the mount at `/` shows unknown addresses this way too. */
export const respondRefusal: RespondPage = (failure, status, c) => showRefusal(c, toPageRefusal(failure, status, c));

export function toPageRefusal({ message, details }: Failure, status: number, c: Context<HttpEnv>): PageRefusal {
  const texts = readFrameTexts(c);
  const explained = texts.explain(toSentence(message));
  if (status !== 404) return { message: explained, status, traceId: c.get('traceId') };
  return { message: details.errorCodeName ? texts.error.notFound : explained, status };
}

export function showRefusal(c: Context<HttpEnv>, { message, status, traceId }: PageRefusal): Promise<Response> {
  const texts = readFrameTexts(c);
  const page = renderErrorPage(texts, { title: status === 404 ? texts.error.notFound : undefined, message, traceId });
  return respondPage(c, page, { status: status as PageOptions['status'] });
}

/**
 * HEAD is safe (RFC 9110 §9.2.1), and routes of GET answer it. A GET that does something once, such as issuing a code or showing a
 * secret, must not do it for the preview of a link: such a page answers HEAD as a method that it does not support.
 */
export const refuseHead: MiddlewareHandler<HttpEnv> = async (c, next) =>
  c.req.method === 'HEAD' ? c.notFound() : await next();

/** Reads the fields of a posted form. Throws `invalid` for any other kind of body, `too_large` for a longer one. */
export async function readForm(c: Context<HttpEnv>, maxBytes = FORM_MAX_BYTES): Promise<URLSearchParams> {
  const type = c.req.header('content-type') ?? '';
  if (!type.startsWith('application/x-www-form-urlencoded'))
    throw new Failure('invalid', 'Cannot read the form: it must be sent as application/x-www-form-urlencoded');
  return parsePairs(await readText(c.req, maxBytes));
}

export function readField(form: URLSearchParams, name: string): string {
  return form.get(name) ?? '';
}

/** Returns undefined when the object of the work no longer exists, as after a second click on a delete button. */
export async function ifThere<Result>(work: () => Promise<Result>): Promise<Result | undefined> {
  try {
    return await work();
  } catch (error) {
    if (isFailure(error) && error.code === 'not_found') return undefined;
    throw error;
  }
}

/** Converts a failure that a person can correct to an error of the form; throws any other error again. */
export function toMistake(texts: FrameTexts, error: unknown): Mistake {
  if (isFailure(error) && (error.code === 'invalid' || error.code === 'conflict'))
    return { message: texts.explain(toSentence(error.message)), field: error.details.field };
  throw error;
}

/** Ends a message with a full stop, unless it is a sentence already. */
export function toSentence(message: string): string {
  return /[.!?。！？]$/.test(message) ? message : `${message}.`;
}
