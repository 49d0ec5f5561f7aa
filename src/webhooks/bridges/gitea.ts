/** Recognises and translates webhooks of Gitea and its forks, which send the headers of GitHub too. */
import { type Bridge, type ReadHeader, verifyHexHmac } from './bridge.ts';
import { translateGithubShape } from './github-shape.ts';

export const gitea: Bridge = {
  recognises: (header) => readAny(header, 'event') !== undefined,
  verifies: (secret, { header, body }) => verifyHexHmac(secret, body, readAny(header, 'signature')),
  deliveryId: (header) => readAny(header, 'delivery'),
  translate: (header, payload) => translateGithubShape(readAny(header, 'event') ?? '', payload),
};

function readAny(header: ReadHeader, name: string): string | undefined {
  return header(`x-forgejo-${name}`) ?? header(`x-gitea-${name}`) ?? header(`x-gogs-${name}`);
}
