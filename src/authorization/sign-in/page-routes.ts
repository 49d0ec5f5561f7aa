import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { Failure, isFailure } from '../../errors.ts';
import type { HttpEnv } from '../../http/context.ts';
import { STATUS_OF } from '../../http/failure-response.ts';
import { createRoutes } from '../../http/routes.ts';
import { renderErrorPage } from '../pages/notice-pages.ts';
import { type PageOptions, respondPage } from '../pages/page-response.ts';
import type { Mistake } from '../pages/parts.ts';
import { texts } from '../pages/texts.ts';

/** Routes whose refusals are pages for a person. */
export function createPageRoutes(): OpenAPIHono<HttpEnv> {
  const routes = createRoutes();
  routes.onError((error, c) => respondFailurePage(c, error));
  return routes;
}

export function respondFailurePage(c: Context<HttpEnv>, error: unknown): Promise<Response> {
  const traceId = c.get('traceId');
  const isExpected = isFailure(error) && error.code !== 'internal';
  if (!isExpected) c.get('log').error({ traceId, err: error }, 'A page failed unexpectedly');
  const failure = isExpected ? error : new Failure('internal', 'The service failed. Please try again in a moment.');
  if (failure.details.retryAfterSeconds !== undefined)
    c.header('Retry-After', String(failure.details.retryAfterSeconds));
  const isMissing = failure.code === 'not_found';
  const page = renderErrorPage({
    title: isMissing ? texts.error.notFound : undefined,
    message: toSentence(failure.message),
    traceId: isMissing ? undefined : traceId,
  });
  return respondPage(c, page, { status: STATUS_OF[failure.code] as PageOptions['status'] });
}

/** The fields of a posted form. Throws `invalid` for any other kind of body. */
export async function readForm(c: Context<HttpEnv>): Promise<URLSearchParams> {
  const type = c.req.header('content-type') ?? '';
  if (!type.startsWith('application/x-www-form-urlencoded'))
    throw new Failure('invalid', 'Cannot read the form: it must be sent as application/x-www-form-urlencoded');
  return new URLSearchParams(await c.req.text());
}

export function readField(form: URLSearchParams, name: string): string {
  return form.get(name) ?? '';
}

/** What a refused form shows; anything else goes on being thrown. */
export function toMistake(error: unknown): Mistake {
  if (isFailure(error) && (error.code === 'invalid' || error.code === 'conflict'))
    return { message: toSentence(error.message), field: error.details.field };
  throw error;
}

function toSentence(message: string): string {
  return /[.!?]$/.test(message) ? message : `${message}.`;
}
