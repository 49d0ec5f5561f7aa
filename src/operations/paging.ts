/** Declares input and answer of an operation that lists page by page. */
import { z } from '@hono/zod-openapi';

const AFTER = 'The `next` of the page before';

export function pageLimit(usual: number, most = 200) {
  return z.coerce.number().int().min(1).max(most).default(usual);
}

/** Parameters of pages of lists that are ordered by a text. */
export const textPage = {
  after: z.string().max(100).default('').openapi({ description: AFTER }),
  limit: pageLimit(100),
};

/** Parameters of pages of lists that are ordered by id. */
export const idPage = {
  after: z.coerce.number().int().min(0).default(0).openapi({ description: AFTER }),
  limit: pageLimit(100),
};
