/** Reads the body of rows, and limits its size (413). */
import { Failure } from '../../errors.ts';
import type { Call } from '../../http/endpoint.ts';

/** 10,000 training rows with every field are 4 to 5 MB. */
export const MAX_BODY_BYTES = 6_291_456;

/** Reads the body of a call with rows. Throws `invalid` before receiving it if its content type is not JSON. */
export async function readRowBody(call: Pick<Call, 'header' | 'bytes'>): Promise<Uint8Array> {
  checkContentType(call.header('content-type') ?? '');
  return await call.bytes();
}

/** Forms cannot send this content type, so pages of other sites cannot call (CSRF). */
function checkContentType(header: string): void {
  const type = header.split(';')[0]!.trim().toLowerCase();
  if (type === 'application/json') return;
  const message = `Cannot read the request: Content-Type must be application/json, got "${type}"`;
  throw new Failure('invalid', message, { status: 415 });
}
