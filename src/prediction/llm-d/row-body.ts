/** Reads the body of rows, and limits its size (413). */
import { Failure } from '../../errors.ts';
import type { Call } from '../../http/endpoint.ts';

/** 10,000 training rows with every field are 4 to 5 MB. */
export const MAX_BODY_BYTES = 6_291_456;

/** The body of a call that has rows. Throws `invalid` when it is not JSON by its type, before it is received. */
export async function readRowBody(call: Pick<Call, 'header' | 'bytes'>): Promise<Uint8Array> {
  checkContentType(call.header('content-type') ?? '');
  return await call.bytes();
}

/** Forms cannot send this type, so pages of other sites cannot call either (CSRF). */
function checkContentType(header: string): void {
  const type = header.split(';')[0]!.trim().toLowerCase();
  if (type === 'application/json') return;
  const message = `Cannot read the request: Content-Type must be application/json, got "${type}"`;
  throw new Failure('invalid', message, { status: 415 });
}
