/**
 * Declares an operation of the administration API (`/api/admin/v1`), which HTTP and commands serve alike. Names of models may be any text, so they
 * travel in the query or in the body, never in the path.
 */
import type { z } from '@hono/zod-openapi';
import type { NarrowScope } from '../scopes.ts';

/** Below this path are all operations, each under the name of what it is about. */
export const OPERATIONS_PATH = '/api/admin/v1';

// biome-ignore lint/suspicious/noExplicitAny: any operation, whatever it takes and gives
export type AnyOperation = Operation<any, any>;

export interface Operation<Input extends z.ZodObject, Output extends z.ZodType> {
  /** A verb and a noun, as `listPeople`. */
  readonly name: string;
  /** `patch` changes only what it names. */
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'delete';
  /** Below `OPERATIONS_PATH`; a name in braces is a field of the input. */
  readonly path: string;
  readonly tag: string;
  readonly summary: string;
  readonly scope: NarrowScope;
  /** Input that is not in the path is in the query of a GET or DELETE, or beside a file; otherwise in the body as JSON. */
  readonly input: Input;
  readonly output: Output;
  /** What a client reads, and may send back with its changes: fields that the input does not have are taken and ignored. */
  readonly readAs?: z.ZodObject;
  /** The body is a file, and so is the answer, of at most this many bytes. */
  readonly takesFileOf?: number;
  readonly givesFile?: true;
  /** It may be at work for minutes before it answers. */
  readonly takesLong?: true;
}

export type InputOf<O> = O extends Operation<infer Input, z.ZodType> ? z.input<Input> : never;
export type OutputOf<O> = O extends Operation<z.ZodObject, infer Output> ? z.output<Output> : never;

/** Who does it, as the audit log records it. */
export interface Actor {
  /** Undefined for the command line on the store. */
  readonly userId: string | undefined;
  readonly login: string | undefined;
  readonly address?: string | undefined;
  /** The application that holds the token, unless the person made the token. */
  readonly clientId?: string | undefined;
  /** `owner/name` in lower case: the token reaches these repositories and no others. Undefined without such a limit. */
  readonly repositories?: readonly string[] | undefined;
  /** Has all the rights of an administrator, not some of them. */
  readonly isAdmin: boolean;
}

export const COMMAND_LINE: Actor = { userId: undefined, login: undefined, isAdmin: true };

export interface OperationContext {
  readonly actor: Actor;
  /** Empty unless the operation takes a file. */
  readonly file: Uint8Array;
  /** Takes the body out of the budget of bodies, before a long wait. Undefined for a small one, which is not counted. */
  readonly releaseBody?: (() => void) | undefined;
}

/** A call whose body has not come yet, so that it can be refused before it does. */
export interface ArrivingCall {
  /** The fields of the path. */
  readonly path: Readonly<Record<string, string>>;
  readonly actor: Actor;
  readonly bodyBytes: number;
}

/** An operation and what does it. */
export interface Implementation {
  readonly operation: AnyOperation;
  // biome-ignore lint/suspicious/noExplicitAny: `implement` holds both types against the operation
  readonly handle: (input: any, context: OperationContext) => Promise<any>;
  /** Throws for a call over HTTP that would be refused whatever its body says. Not asked about small bodies. */
  readonly admit?: ((call: ArrivingCall) => Promise<void>) | undefined;
}

export function describeOperation<Input extends z.ZodObject, Output extends z.ZodType>(
  operation: Operation<Input, Output>,
): Operation<Input, Output> {
  return operation;
}

export function implement<Input extends z.ZodObject, Output extends z.ZodType>(
  operation: Operation<Input, Output>,
  handle: (input: z.output<Input>, context: OperationContext) => Promise<z.input<Output>>,
  admit?: Implementation['admit'],
): Implementation {
  return { operation, handle, admit };
}

/** The fields of the input that stand in the path. */
export function listPathFields(path: string): string[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? '');
}

export function sendsJson({ method, takesFileOf }: AnyOperation): boolean {
  return (method === 'post' || method === 'put' || method === 'patch') && takesFileOf === undefined;
}
