/** Checks the address of a service that a command names: tokens are sent over https only, or to this machine. */
import { Failure } from '../errors.ts';

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/** Returns the address without a slash at its end. Throws unless a token may be sent there: over https, or to this machine. */
export function readServiceUrl(text: string): string {
  const url = URL.parse(text.includes('://') ? text : `https://${text}`);
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '' || url.search !== '' || url.hash !== '')
    throw new Failure(
      'invalid',
      `Cannot use "${text}": it must be the address of a service, as https://trivet.example.org`,
    );
  if (url.protocol !== 'https:' && !LOOPBACK.test(url.hostname))
    throw new Failure('invalid', `Cannot use "${text}": a token travels over https only, or over http to this machine`);
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
}
