/**
 * Declares an operation of the administration API (`/api/admin/v1`), which HTTP and commands both serve. Names of models may be any
 * text, so they are in the query or in the body, never in the path.
 */
import type { z } from '@hono/zod-openapi';
import type { NarrowScope } from '../scopes.ts';

/** The path prefix of all operations; each continues with the name of its resource. */
export const OPERATIONS_PATH = '/api/admin/v1';

// biome-ignore lint/suspicious/noExplicitAny: any operation, whatever it takes and gives
export type AnyOperation = Operation<any, any>;

export interface Operation<Input extends z.ZodObject, Output extends z.ZodType> {
  /** A verb and a noun, such as `listPeople`. */
  readonly name: string;
  /** `patch` changes only the fields that it names. */
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'delete';
  /** Below `OPERATIONS_PATH`; a name in braces is a field of the input. */
  readonly path: string;
  readonly tag: string;
  readonly summary: string;
  readonly scope: NarrowScope;
  /** Input that is not in the path is in the query of a GET or DELETE, or beside a file; otherwise in the body as JSON. */
  readonly input: Input;
  readonly output: Output;
  /** The resource that a client reads and may send back with changes: its fields that the input does not have are ignored. */
  readonly readAs?: z.ZodObject;
  /** The body is a file, and so is the answer, of at most this many bytes. */
  readonly takesFileOf?: number;
  readonly givesFile?: true;
  /** It may take minutes to answer. */
  readonly takesLong?: true;
}

export type InputOf<O> = O extends Operation<infer Input, z.ZodType> ? z.input<Input> : never;
export type OutputOf<O> = O extends Operation<z.ZodObject, infer Output> ? z.output<Output> : never;

/** The actor, as the audit log records it. */
export interface Actor {
  /** Undefined for commands on the store. */
  readonly userId: string | undefined;
  readonly login: string | undefined;
  readonly address?: string | undefined;
  /** The application that holds the token, unless the person made the token. */
  readonly clientId?: string | undefined;
  /** `owner/name` in lower case: the token reaches these repositories and no others. Undefined without such a limit. */
  readonly repositories?: readonly string[] | undefined;
  /** Whether the token has all rights of an administrator. */
  readonly isAdmin: boolean;
}

export const COMMAND_LINE: Actor = { userId: undefined, login: undefined, isAdmin: true };

export interface OperationContext {
  readonly actor: Actor;
  /** Empty unless the operation takes a file. */
  readonly file: Uint8Array;
  /** Takes the body out of the body budget before a long wait. Undefined for a small body, which is not counted. */
  readonly releaseBody?: (() => void) | undefined;
}

/** A call before its body has arrived, so that it can be refused early. */
export interface ArrivingCall {
  /** The fields of the path. */
  readonly path: Readonly<Record<string, string>>;
  readonly actor: Actor;
  readonly bodyBytes: number;
}

/** An operation and its implementation. */
export interface Implementation {
  readonly operation: AnyOperation;
  // biome-ignore lint/suspicious/noExplicitAny: `implement` holds both types against the operation
  readonly handle: (input: any, context: OperationContext) => Promise<any>;
  /** Throws for a call over HTTP that would be refused whatever its body is. Not called for small bodies. */
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

/** The fields of the input that are in the path. */
export function listPathFields(path: string): string[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? '');
}

export function sendsJson({ method, takesFileOf }: AnyOperation): boolean {
  return (method === 'post' || method === 'put' || method === 'patch') && takesFileOf === undefined;
}
