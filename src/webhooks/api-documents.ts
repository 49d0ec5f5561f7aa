/** What the descriptions of several routes share. */
import { z } from '@hono/zod-openapi';

export const repositoryPath = z.object({
  owner: z.string().openapi({ description: 'Path of the person or organization.' }),
  repo: z.string().openapi({ description: 'Path of the repository.' }),
});

export const hookPath = repositoryPath.extend({
  id: z.string().openapi({ description: 'Identifier of the webhook.' }),
});

/** The same parameters, as JSON or as a form; the query is taken too. */
export function bodyOf<S extends z.ZodType>(schema: S) {
  return {
    content: { 'application/json': { schema }, 'application/x-www-form-urlencoded': { schema } },
    required: true,
  };
}
