/** Sends the status of a call that failed, and charges its connection for the encoding of the text. */
import { COST, costOfHeaders } from '../budget/turns.ts';
import type { Http2Stream } from '../http2/stream.ts';
import { encodeFailureResponse, encodeFailureTrailers } from '../protocol/response-headers.ts';
import type { GrpcStatus } from '../protocol/status.ts';

/** Ends the answer. `areHeadersSent` is true when its headers were sent before, with a message. */
export function sendFailure(stream: Http2Stream, status: GrpcStatus, areHeadersSent: boolean): void {
  const block = areHeadersSent ? encodeFailureTrailers(status) : encodeFailureResponse(status);
  stream.connection.share.spend(COST.failure + costOfHeaders(block.length));
  if (areHeadersSent) stream.sendTrailers(block);
  else stream.sendHeaders(block, true);
}
