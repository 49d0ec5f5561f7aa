import type { Headers } from '../http2/request-head.ts';
import { type Refusal, refusalOf } from './refused-request.ts';

/** What the head of a request asks for. */
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
