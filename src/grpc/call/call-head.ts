/** Reads path and content type from the head of a request, once for all calls with the same head. */
import type { Headers } from '../http2/request-head.ts';
import { type Refusal, refusalOf } from './refused-request.ts';

/** The path that a request asks for, or why it is refused. */
export interface CallHead {
  readonly path: string;
  /** Set for a request that is not gRPC. */
  readonly refusal: Refusal | undefined;
}

/** Reads heads of requests. Reuses the result of the last one if the same head comes again, as most calls of a client have it. */
export class CallHeadReader {
  #lastHeaders: Headers | undefined;
  #lastHead: CallHead | undefined;

  read(headers: Headers): CallHead {
    if (this.#lastHead !== undefined && headers === this.#lastHeaders) return this.#lastHead;
    this.#lastHeaders = headers;
    this.#lastHead = { path: headers.get(':path') ?? '', refusal: refusalOf(headers) };
    return this.#lastHead;
  }
}
