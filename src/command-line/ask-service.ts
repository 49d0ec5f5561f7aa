/** Sends the requests of `trivet login`, and distinguishes transient failures from refusals. */
import { Failure } from '../errors.ts';
import { refuseUnreachable } from '../operations/call-service.ts';

const TIMEOUT_MS = 30_000;

/**
 * Throws `unavailable` without an answer, and for 429 and 5xx: the service is starting or limits this client, or a proxy cannot
 * reach it. Other answers are returned.
 */
export async function askService(url: string, init: RequestInit = {}): Promise<Response> {
  const { origin } = new URL(url);
  // A redirect could send a secret to another host.
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
