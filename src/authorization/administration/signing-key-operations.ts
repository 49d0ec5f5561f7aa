/** Lists the keys that sign identity tokens, and replaces them when one has leaked: over the administration API and by command. */
import { z } from '@hono/zod-openapi';
import { describeOperation, type Implementation, implement } from '../../operations/operation.ts';
import { listSigningKeys } from '../tokens/signing-key-store.ts';
import { findSigning, type KeyDependencies, replaceSigningKeys } from '../tokens/signing-keys.ts';
import { recordStatement } from './person.ts';

const about = { tag: 'All applications', scope: 'admin:applications' } as const;
const kid = z.string().openapi({ description: 'The `kid` of the key in /oauth/jwks and in what it signs' });
const keySchema = z
  .object({
    kid,
    isSigning: z
      .boolean()
      .openapi({ description: 'Whether it signs now; a new key is published for ten minutes before it signs' }),
    createdAtMs: z.int(),
    publishedUntilMs: z
      .int()
      .openapi({ description: 'Until when /oauth/jwks publishes it, in milliseconds since 1970' }),
  })
  .openapi('SigningKey');

export const listKeys = describeOperation({
  ...about,
  name: 'listSigningKeys',
  method: 'get',
  path: '/signing-keys',
  summary: 'List the keys that sign identity tokens',
  input: z.object({}),
  output: z
    .object({
      keys: z.array(keySchema).openapi({ description: 'Oldest first; empty before the first identity token' }),
    })
    .openapi('SigningKeys'),
});
export const replaceKeys = describeOperation({
  ...about,
  name: 'replaceSigningKeys',
  method: 'post',
  path: '/signing-keys/replace',
  summary: 'Replace all keys that sign identity tokens after a leak; a new key signs at once',
  input: z.object({}),
  output: z
    .object({ kid, replaced: z.array(z.string()).openapi({ description: 'The `kid` of each replaced key' }) })
    .openapi('ReplacedSigningKeys'),
});

export function implementSigningKeys(dependencies: KeyDependencies): Implementation[] {
  const { store, world } = dependencies;
  return [
    implement(listKeys, async () => {
      const nowMs = world.nowMs();
      const keys = await listSigningKeys(store, nowMs);
      const signing = findSigning(keys, nowMs);
      return {
        keys: keys.map(({ kid, createdAtMs, expiresAtMs }) => ({
          kid,
          isSigning: kid === signing?.kid,
          createdAtMs,
          publishedUntilMs: expiresAtMs,
        })),
      };
    }),
    implement(replaceKeys, async (_, { actor }) => {
      const event = { kind: 'signing_keys_replaced', userId: actor.userId } as const;
      return await replaceSigningKeys(dependencies, recordStatement(event, actor, world.nowMs()));
    }),
  ];
}
