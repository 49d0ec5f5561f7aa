/** Recognises a 408 (Request Timeout), with which some servers end an idle connection before they close it. */
import type { Socket } from 'node:net';

/**
 * RFC 9110 §15.5.9: a server sends 408 when it has decided to close an idle connection rather than wait. It answers no request, so it
 * looks like a response that is out of step, but it means that no request came.
 */
const TIMEOUT_RESPONSE = /^HTTP\/1\.[01] 408 /;
const STATUS_LINE_BYTES = 'HTTP/1.1 408 '.length;

/** Returns a function that checks whether the last bytes received begin with such a response. */
export function watchForTimeout(socket: Socket): () => boolean {
  const read = socket.read.bind(socket);
  let start = '';
  socket.read = (size?: number) => {
    const chunk: unknown = read(size);
    if (chunk instanceof Buffer) start = chunk.toString('latin1', 0, STATUS_LINE_BYTES);
    return chunk;
  };
  return () => TIMEOUT_RESPONSE.test(start);
}
