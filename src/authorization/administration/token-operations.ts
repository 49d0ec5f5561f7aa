/** Implements the operations that list and revoke personal access tokens of all people, such as a leaked one. */
import { z } from '@hono/zod-openapi';
import { describeOperation, type Implementation, implement } from '../../operations/operation.ts';
import { revokePersonalToken } from '../tokens/personal-token.ts';
import { listPersonalTokens, type PersonalToken } from '../tokens/personal-token-store.ts';
import { findChangeable, findPerson, type PeopleDependencies } from './person.ts';

const about = { tag: 'People', scope: 'admin:people' } as const;
const login = z.string().min(1).max(100);
const tokenId = z.string().min(1).max(100).openapi({ description: 'The id of the token, not its text' });
const tokenSchema = z
  .object({
    tokenId,
    userId: z.string(),
    name: z.string(),
    scopes: z.array(z.string()),
    repositories: z
      .array(z.string())
      .optional()
      .openapi({ description: 'The only repositories that the token reaches' }),
    hint: z.string().openapi({ description: 'The last four characters' }),
    createdAtMs: z.int(),
    expiresAtMs: z.int().optional().openapi({ description: 'Absent: it does not expire' }),
    lastUsedAtMs: z.int().optional().openapi({ description: 'Absent: never used' }),
  })
  .openapi('TokenOfPerson');

export const listTokens = describeOperation({
  ...about,
  name: 'listTokensOfPerson',
  method: 'get',
  path: '/people/{login}/tokens',
  summary: 'List the personal access tokens of a person, without their text',
  input: z.object({ login }),
  output: z.object({ tokens: z.array(tokenSchema).openapi({ description: 'Newest first' }) }).openapi('TokensOfPerson'),
});
export const revokeToken = describeOperation({
  ...about,
  name: 'revokeTokenOfPerson',
  method: 'delete',
  path: '/people/{login}/tokens/{tokenId}',
  summary: 'Revoke a personal access token of a person, and all tokens that were created with it',
  input: z.object({ login, tokenId }),
  output: z.object({ login, tokenId }).openapi('RevokedToken'),
});

export function implementTokens({ store, world, countToken }: PeopleDependencies): Implementation[] {
  return [
    implement(listTokens, async (input) => {
      const { id } = await findPerson(store, input.login);
      return { tokens: (await listPersonalTokens(store, id)).map(toJson) };
    }),
    implement(revokeToken, async (input, { actor }) => {
      const { id: userId } = await findChangeable(store, actor, input.login);
      await revokePersonalToken(store, world, {
        userId,
        tokenId: input.tokenId,
        actorId: actor.userId,
        clientId: actor.clientId,
        address: actor.address,
        isByCommand: actor.userId === undefined,
        hasAllRights: actor.isAdmin,
      });
      countToken?.('revoked', 'personal');
      return { login: input.login, tokenId: input.tokenId };
    }),
  ];
}

function toJson({ scopes, repositories, ...token }: PersonalToken): z.infer<typeof tokenSchema> {
  return { ...token, scopes: [...scopes], ...(repositories === undefined ? {} : { repositories: [...repositories] }) };
}
