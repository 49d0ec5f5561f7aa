/** Recognises incoming webhooks of GitHub, verifies `X-Hub-Signature-256`, and translates them. */
import { type Bridge, verifyHexHmac } from './bridge.ts';
import { translateGithubShape } from './github-shape.ts';

export const github: Bridge = {
  recognises: (header) => header('x-github-event') !== undefined,
  verifies: (secret, { header, body }) =>
    verifyHexHmac(secret, body, header('x-hub-signature-256')?.replace(/^sha256=/, '')),
  deliveryId: (header) => header('x-github-delivery'),
  translate: (header, payload) => translateGithubShape(header('x-github-event') ?? '', payload),
};
