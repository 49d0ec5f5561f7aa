/** Names the script that speaks with the browser's passkeys. */
import { loadAsset } from '../../pages/assets.ts';

/** Speaks with the browser's passkeys; a page that has it works without. */
export const passkeyScript = loadAsset(new URL('passkey.js', import.meta.url));
