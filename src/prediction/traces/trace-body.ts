/** Reads the body of an OTLP/HTTP export, decompressed within limits. */
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import type { Context } from 'hono';
import { Failure } from '../../errors.ts';
import type { HttpEnv } from '../../http/context.ts';
import { parseJson } from '../../http/parser-limits.ts';
import { readOtlpJson } from '../formats/spans/otlp-json.ts';
import { readOtlpProtobuf } from '../formats/spans/otlp-protobuf.ts';
import type { Span } from '../formats/spans/span.ts';

export type TraceEncoding = 'protobuf' | 'json';

/** Throws `invalid` (415) for another content type. */
export function readEncoding(contentType: string | undefined): TraceEncoding {
  const kind = contentType?.split(';')[0]?.trim().toLowerCase() ?? '';
  if (kind === 'application/x-protobuf' || kind === 'application/protobuf') return 'protobuf';
  if (kind === 'application/json') return 'json';
  throw new Failure(
    'invalid',
    `Cannot read the export: Content-Type must be application/x-protobuf or application/json, got "${kind.slice(0, 100)}"`,
    { status: 415 },
  );
}

/** Limits the decompressed body, because reading it delays all other callers. `send_batch_max_size` of a collector keeps it smaller. */
export const MAX_EXPORT_BYTES = 4_194_304;
const MAX_EXPANDING = 4;

const expand = promisify(gunzip);
let expanding = 0;

export async function readSpans(c: Context<HttpEnv>, encoding: TraceEncoding): Promise<readonly Span[]> {
  const bytes = await readExpanded(c);
  if (encoding === 'protobuf') return readOtlpProtobuf(bytes);
  const value = parseJson(new TextDecoder().decode(bytes));
  if (value === undefined) throw new Failure('invalid', 'Cannot read the export: the body must be JSON');
  return [...readOtlpJson(value)];
}

async function readExpanded(c: Context<HttpEnv>): Promise<Uint8Array> {
  const encoding = c.req.header('content-encoding')?.trim().toLowerCase() ?? 'identity';
  const bytes = new Uint8Array(await c.req.arrayBuffer());
  if (encoding === 'identity' || encoding === '') return checkSize(bytes);
  if (encoding !== 'gzip')
    throw new Failure(
      'invalid',
      `Cannot read the export: Content-Encoding must be gzip or identity, got "${encoding.slice(0, 100)}"`,
      { status: 415 },
    );
  // Each decompression takes up to 4 MiB of memory. A collector tries again after 503.
  if (expanding >= MAX_EXPANDING)
    throw new Failure('unavailable', 'Cannot read the export: too many at once', { retryAfterSeconds: 1 });
  expanding++;
  try {
    return await expand(bytes, { maxOutputLength: MAX_EXPORT_BYTES });
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw refuseSize();
    throw new Failure('invalid', 'Cannot read the export: the body must be gzip', {}, { cause });
  } finally {
    expanding--;
  }
}

function checkSize(bytes: Uint8Array): Uint8Array {
  if (bytes.length > MAX_EXPORT_BYTES) throw refuseSize();
  return bytes;
}

function refuseSize(): Failure {
  return new Failure(
    'too_large',
    `Cannot read the export: it must be at most ${MAX_EXPORT_BYTES} bytes expanded; lower send_batch_max_size`,
  );
}
