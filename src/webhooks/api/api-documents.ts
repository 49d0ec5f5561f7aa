/** Builds the parts of the OpenAPI document that several routes share. */
import { type OpenAPIHono, z } from '@hono/zod-openapi';

export const repositoryPath = z.object({
  owner: z.string().openapi({ description: 'Path of the person or organization.' }),
  repo: z.string().openapi({ description: 'Path of the repository.' }),
});

export const hookPath = repositoryPath.extend({
  id: z.string().openapi({ description: 'Identifier of the webhook.' }),
});

/** A request body in JSON or as a form. Its parameters may be in the query too. */
export function bodyOf<S extends z.ZodType>(schema: S) {
  return {
    content: { 'application/json': { schema }, 'application/x-www-form-urlencoded': { schema } },
    required: true,
  };
}

const refusalJson = z
  .object({
    error_code: z.int().openapi({ description: 'The HTTP status, or 1000 (missing parameter), 1003 (not existing).' }),
    error_code_name: z.string(),
    error_message: z.string(),
    message: z.string(),
    trace_id: z.string().openapi({ description: 'Also in the log of the service.' }),
  })
  .openapi('Refusal');

/** The refusals that every operation can answer. */
export const REFUSED = {
  description:
    'Refused: 400 bad input, 401 no or a wrong token, 403 no rights, 404 not there, 409 conflict, 429 too many',
  content: { 'application/json': { schema: refusalJson } },
};

type Registry = OpenAPIHono['openAPIRegistry'];

export type RouteDocument = Parameters<Registry['registerPath']>[0];

export function describeRoutes(registry: Registry, documents: readonly RouteDocument[]): void {
  for (const document of documents) registry.registerPath(document);
}
