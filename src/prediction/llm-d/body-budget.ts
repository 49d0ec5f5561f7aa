/** Bodies of this wire may be large. Together, those that are received or read take no more memory than this allows. */
import { Failure } from '../../errors.ts';
import type { Call } from '../../http/endpoint.ts';

/** 10,000 training rows with every field are 4 to 5 MB. */
export const MAX_BODY_BYTES = 6_291_456;
const MAX_ALL_BYTES = 100_663_296;

/** Receives the body of a call, and reads its rows. */
export type ReadBody = <T>(
  call: Pick<Call, 'header' | 'bytes'>,
  readRows: (body: Uint8Array) => Promise<T>,
) => Promise<T>;

/** Refuses a body that is not JSON by its type, or for which there is no room now. */
export function createBodyReader(maxAllBytes = MAX_ALL_BYTES): ReadBody {
  let usedBytes = 0;
  return async (call, readRows) => {
    checkContentType(call.header('content-type') ?? '');
    const bytes = Number(call.header('content-length') ?? MAX_BODY_BYTES);
    if (usedBytes + bytes > maxAllBytes)
      throw new Failure('unavailable', 'Cannot read the request: too many large bodies arrive at once', {
        retryAfterSeconds: 1,
      });
    usedBytes += bytes;
    try {
      return await readRows(await call.bytes());
    } finally {
      usedBytes -= bytes;
    }
  };
}

/** A type that forms do not have also keeps pages of other sites from calling. */
function checkContentType(header: string): void {
  const type = header.split(';')[0]!.trim().toLowerCase();
  if (type === 'application/json') return;
  const message = `Cannot read the request: Content-Type must be application/json, got "${type}"`;
  throw new Failure('invalid', message, { status: 415 });
}
