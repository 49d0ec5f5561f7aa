/** Tolerates unexpected interim responses (1xx), at which the HTTP client would close the connection. */
import type { Socket } from 'node:net';

/**
 * RFC 9110 §15.2: a client must be able to parse interim responses (1xx) before the final one, even if it does not expect
 * them. undici reports all of them except 100 (Continue), at which it closes the connection. So the last digit of an unexpected 100 is
 * changed while it is read. It is then counted and limited like any other interim response, and its connection is not used again.
 */

const STATUS_LINE = Buffer.from('HTTP/1.1 1');
const ZERO = '0'.charCodeAt(0);
/** 102 (Processing) has no more effect than a 100 (Continue) that was not requested. */
const LAST_DIGIT = '2'.charCodeAt(0);
const MINOR_VERSION_AT = 'HTTP/1.'.length;
const HEAD_END = Buffer.from('\r\n\r\n');

/** Returns a function to call before every request on the socket. */
export function tolerateContinue(socket: Socket): () => void {
  const responses = createInterimReader();
  const read = socket.read.bind(socket);
  socket.read = (size?: number) => {
    const chunk: unknown = read(size);
    if (chunk instanceof Buffer) responses.take(chunk);
    return chunk;
  };
  return responses.restart;
}

/** Parses the heads of interim responses up to the first final response. */
function createInterimReader() {
  let place: 'status line' | 'head' | 'elsewhere' = 'elsewhere';
  /** Bytes of the status line, or of the end of the head, that have arrived. */
  let matched = 0;
  /** The second digit of the status is 0. */
  let hasZero = false;

  const moveTo = (next: typeof place) => {
    place = next;
    matched = 0;
  };
  const takeStatusByte = (chunk: Buffer, at: number) => {
    const byte = chunk[at];
    matched += 1;
    if (matched <= STATUS_LINE.length) {
      const fits = matched - 1 === MINOR_VERSION_AT || byte === STATUS_LINE[matched - 1];
      if (!fits) moveTo('elsewhere');
    } else if (matched === STATUS_LINE.length + 1) hasZero = byte === ZERO;
    else {
      if (hasZero && byte === ZERO) chunk[at] = LAST_DIGIT;
      moveTo('head');
    }
  };
  const takeHeadByte = (byte: number | undefined) => {
    matched = byte === HEAD_END[matched] ? matched + 1 : Number(byte === HEAD_END[0]);
    if (matched === HEAD_END.length) moveTo('status line');
  };

  return {
    restart: () => moveTo('status line'),
    take: (chunk: Buffer) => {
      for (let at = 0; at < chunk.length && place !== 'elsewhere'; at += 1)
        if (place === 'status line') takeStatusByte(chunk, at);
        else takeHeadByte(chunk[at]);
    },
  };
}
