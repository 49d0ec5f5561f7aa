/** Limits the number of parts of an OTLP export. */
import { Failure } from '../../../errors.ts';

/** The most parts of an export; one of 4 MiB with spans of the usual size has fewer. */
const MAX_PARTS = 100_000;

/** Throws `too_large` when an export has so many resources, scopes, spans and attributes that reading it takes long. */
export function checkParts(parts: number): void {
  if (parts > MAX_PARTS)
    throw new Failure(
      'too_large',
      `Cannot read the export: it must have at most ${MAX_PARTS} spans and attributes; lower send_batch_max_size`,
    );
}
