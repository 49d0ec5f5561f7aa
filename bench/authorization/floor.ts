/** Replaces a server of the protocol where only the transport is measured: it answers every request the same. */
import { serveParent } from './protocol.ts';

export const FLOOR_ANSWER = {
  active: true,
  access_token: 'a'.repeat(55),
  refresh_token: 'b'.repeat(55),
  scope: 'all_user',
};

export function serveFloor(port: number): void {
  serveParent({
    ready: {
      port,
      clientId: 'bench',
      clientSecret: 'secret',
      tokenPath: '/token',
      introspectPath: '/introspect',
      userPath: '/user',
    },
    prepare: async (_kind, count) => Array.from({ length: count }, (_, index) => `secret-${index}`),
  });
}
