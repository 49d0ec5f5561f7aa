/** Creates routes whose schemas refuse invalid input with the name of the field. */
import { OpenAPIHono } from '@hono/zod-openapi';
import type { Env } from 'hono';
import type { z } from 'zod';
import { Failure } from '../errors.ts';
import type { HttpEnv } from './context.ts';

/** An empty set of routes whose schemas refuse bad input as a `Failure` that names the field. */
export function createRoutes<E extends Env = HttpEnv>(): OpenAPIHono<E> {
  return new OpenAPIHono<E>({
    defaultHook: (result) => {
      if (!result.success) throw describeInvalid(result.target, result.error);
    },
  });
}

/** `target` names the part of the request, for issues that name no field. */
export function describeInvalid(target: string, error: Pick<z.ZodError, 'issues'>): Failure {
  const mistakes = error.issues.map((issue) => `${issue.path.join('.') || target} ${describeMistake(issue.message)}`);
  const field = error.issues[0]?.path.join('.') || target;
  return new Failure('invalid', `Cannot read the request: ${mistakes.join('; ')}`, { field });
}

/** Converts a text of a query or a path to a number before its schema reads it. */
const NO_NUMBER = 'Invalid input: expected number, received NaN';

function describeMistake(message: string): string {
  if (message === NO_NUMBER) return 'must be a number';
  return message.charAt(0).toLowerCase() + message.slice(1);
}
