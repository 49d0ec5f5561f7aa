/** Calls an operation directly on the store, without a running service. */
import { describeInvalid } from '../http/routes.ts';
import type { AnyOperation, Implementation, InputOf, OperationContext, OutputOf } from './operation.ts';
import { listFields, refuseUnknownFields } from './operation-input.ts';

/** Calls operations: on the store, or on a running service. */
export interface Operator {
  call<O extends AnyOperation>(operation: O, input: InputOf<O>, file?: Uint8Array): Promise<OutputOf<O>>;
  /** The time of the store or the service. */
  readTimeMs(): Promise<number>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Does the same work as the API, in this process. */
export async function callOnStore<O extends AnyOperation>(
  implementations: readonly Implementation[],
  operation: O,
  { input, ...context }: OperationContext & { readonly input: InputOf<O> },
): Promise<OutputOf<O>> {
  const found = implementations.find((one) => one.operation === operation);
  if (found === undefined) throw new TypeError(`The operation ${operation.name} has no implementation here`);
  refuseUnknownFields(input, listFields(operation.input));
  const parsed = operation.input.safeParse(input);
  if (!parsed.success) throw describeInvalid('input', parsed.error);
  return (await found.handle(parsed.data, context)) as OutputOf<O>;
}
