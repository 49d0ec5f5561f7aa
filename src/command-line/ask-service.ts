/** Sends the requests of `trivet login`, and keeps faults that pass apart from refusals. */
import { Failure } from '../errors.ts';
import { refuseUnreachable } from '../operations/call-service.ts';

const TIMEOUT_MS = 30_000;

/**
 * Throws `unavailable` when no answer comes, and for 429 and 5xx: the service starts or limits this client, or a proxy before it
 * cannot reach it. Other answers are the service's own.
 */
export async function askService(url: string, init: RequestInit = {}): Promise<Response> {
  const { origin } = new URL(url);
  // A redirect could lead elsewhere with a secret.
  const response = await fetch(url, {
    ...init,
    redirect: 'error',
    signal: AbortSignal.timeout(TIMEOUT_MS),
  }).catch((error: unknown) => {
    throw refuseUnreachable(origin, error);
  });
  if (response.status !== 429 && response.status < 500) return response;
  await response.body?.cancel().catch(() => undefined);
  throw new Failure('unavailable', `${origin} cannot answer now (${response.status}): try again later`);
}
