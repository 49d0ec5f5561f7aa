/** Reads the page and its size from the parameters of a list. */
import { z } from '@hono/zod-openapi';
import type { Page } from '../../http/page-headers.ts';
import { type Parameters, parseParameters, presetParameter } from './parameters.ts';

export const pageParameters = z.object({
  page: presetParameter(1, 1_000_000, 1),
  per_page: presetParameter(1, 100, 20),
});

/** Refuses a page size above the limit instead of clipping it: a client that requests 1000 must not assume that it has all. */
export function readPage(values: Parameters, action: string): Page {
  const { page, per_page } = parseParameters(pageParameters, values, action);
  return { number: page, size: per_page, offset: (page - 1) * per_page };
}
