/** Encrypts the request for the consent form, or for the URL of the device page, so that no one can change it. */
import { Failure } from '../../errors.ts';
import type { Session } from '../sign-in/sign-in-context.ts';
import type { ProtocolDependencies } from '../tokens/protocol-dependencies.ts';

interface ShownRequest {
  readonly atMs: number;
  readonly content: unknown;
}

/** A page can be open for an hour before its form is refused. */
const PAGE_LIFETIME_MS = 3_600_000;

/** Encrypts the request that the person sees. Only this service can read the result, and only this session can send it back. */
export function encryptRequest(
  { cipher, world }: ProtocolDependencies,
  session: Session,
  { kind, content }: { readonly kind: string; readonly content: unknown },
): string {
  const shown: ShownRequest = { atMs: world.nowMs(), content };
  return Buffer.from(cipher.encrypt(JSON.stringify(shown), `${kind}:${session.id}`)).toString('base64url');
}

export function decryptRequest<Content>(
  { cipher, world }: ProtocolDependencies,
  session: Session,
  { kind, ciphertext }: { readonly kind: string; readonly ciphertext: string },
): Content {
  try {
    const text = cipher.decrypt(Buffer.from(ciphertext, 'base64url'), `${kind}:${session.id}`).toString();
    const { atMs, content } = JSON.parse(text) as ShownRequest;
    if (Math.abs(world.nowMs() - atMs) <= PAGE_LIFETIME_MS) return content as Content;
  } catch {
    // Refused below, whatever the error is.
  }
  throw new Failure(
    'forbidden',
    'This page is too old or belongs to another session: go back to the application and try again',
  );
}
