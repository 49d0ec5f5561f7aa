/** Loads the browser script for passkeys. */
import { loadAsset } from '../../pages/assets.ts';

/** Calls the browser's WebAuthn API. The rest of a page works without this script. */
export const passkeyScript = loadAsset(new URL('passkey.js', import.meta.url));
