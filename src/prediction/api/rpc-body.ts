/** Reads the bodies of calls over HTTP, by the Connect protocol and the JSON mapping of proto3. */
import { isUtf8 } from 'node:buffer';
import type { Context } from 'hono';
import { Failure } from '../../errors.ts';
import type { HttpEnv } from '../../http/context.ts';
import { parseJson } from '../../http/parser-limits.ts';

type Body = Uint8Array<ArrayBuffer>;

export async function readBytes(c: Context<HttpEnv>): Promise<Body> {
  const encoding = c.req.header('content-encoding')?.trim().toLowerCase() ?? 'identity';
  // https://connectrpc.com/docs/protocol/#unary-request: an encoding that the server does not know is `unimplemented`.
  if (encoding !== 'identity' && encoding !== '')
    throw new Failure('invalid', `Cannot read the request: Content-Encoding must be identity, got "${encoding}"`, {
      status: 501,
      rpcCode: 'unimplemented',
    });
  return new Uint8Array(await c.req.arrayBuffer());
}

export async function readJson(c: Context<HttpEnv>): Promise<unknown> {
  const body = await readBytes(c);
  if (!isUtf8(body)) throw new Failure('invalid', 'Cannot read the request: the body must be UTF-8');
  const value = parseJsonText(decoder.decode(body));
  if (value === undefined) throw new Failure('invalid', 'Cannot read the request: the body must be JSON');
  return value;
}

/** Returns the lines that are not empty. A line that is not UTF-8 is undefined, and does not invalidate the others. */
export function splitLines(body: Body): readonly (string | undefined)[] {
  const lines = isUtf8(body) ? decoder.decode(body).split('\n') : splitBytes(body);
  return lines.filter((line) => line?.trim() !== '');
}

function splitBytes(body: Body): (string | undefined)[] {
  const lines: (string | undefined)[] = [];
  for (let start = 0; start < body.length; ) {
    const end = body.indexOf(NEWLINE, start);
    const line = body.subarray(start, end < 0 ? body.length : end);
    lines.push(isUtf8(line) ? decoder.decode(line) : undefined);
    start += line.length + 1;
  }
  return lines;
}

/** Returns undefined if the text is not JSON. Throws `invalid` for a number that is too large for a double. */
export function parseJsonText(text: string): unknown {
  const value = parseJson(text);
  if (value !== undefined && HUGE_NUMBER.test(text)) checkNumbers(text);
  return value;
}

/** Checks numbers during a second parse, in which their source text is known; the parsed value is only Infinity. */
function checkNumbers(text: string): void {
  JSON.parse(text, (key, value: unknown, context?: { readonly source?: string }) => {
    if (value === Number.POSITIVE_INFINITY || value === Number.NEGATIVE_INFINITY)
      throw new Failure(
        'invalid',
        `Cannot read the message: ${key} must be a number of 64 bits, got ${context?.source?.slice(0, 100)}`,
        { field: key },
      );
    return value;
  });
}

const NEWLINE = 0x0a;
/** Finds an exponent with which a number may exceed 1.8e308. A number written out in 309 digits is reported as Infinity. */
const HUGE_NUMBER = /\d[eE]\+?(?:[3-9]\d\d|\d{4})/;
const decoder = new TextDecoder();
