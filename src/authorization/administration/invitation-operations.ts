/** Implements the operations that invite people and send links for new passwords. */
import { z } from '@hono/zod-openapi';
import type { Actor } from '../../operations/operation.ts';
import { describeOperation, type Implementation, implement } from '../../operations/operation.ts';
import type { LinkDependencies, PasswordLink } from '../password-links/password-link.ts';
import { invitePerson, orderPasswordLink } from './invite-people.ts';

const about = { tag: 'People', scope: 'admin:people', method: 'post' } as const;
const login = z.string().min(1).max(100);
const sendMail = z.boolean().default(false).openapi({ description: 'Mail the link instead of returning it' });
const linkSchema = z
  .object({
    login: z.string(),
    link: z
      .string()
      .nullable()
      .openapi({ description: 'Lets the first person who opens it choose the password; null if it was mailed' }),
    expiresAtMs: z.int().openapi({ description: 'When the link expires, in milliseconds since 1970' }),
  })
  .openapi('PasswordLink');

export const invite = describeOperation({
  ...about,
  name: 'invitePerson',
  path: '/invitations',
  summary: 'Create an account without a password, and a link with which its person chooses one within 7 days',
  input: z.object({
    login,
    name: z.string().max(200),
    email: z.string().max(320).nullable().default(null).openapi({ description: 'Counts as verified' }),
    sendMail,
  }),
  output: linkSchema,
});
export const orderLink = describeOperation({
  ...about,
  name: 'createPasswordLink',
  path: '/people/{login}/password-link',
  summary: 'Create a link with which a person chooses a new password within 24 hours, or accepts an invitation again',
  input: z.object({ login, sendMail }),
  output: linkSchema,
});

export function implementInvitations(dependencies: LinkDependencies): Implementation[] {
  return [
    implement(invite, async (input, { actor }) => {
      const sendsMail = input.sendMail;
      return answerLink(input, await invitePerson(dependencies, actor, { ...input, sendsMail }));
    }),
    implement(orderLink, async (input, { actor }) => answerLink(input, await createLink(dependencies, actor, input))),
  ];
}

function createLink(
  dependencies: LinkDependencies,
  actor: Actor,
  { login, sendMail }: z.output<typeof orderLink.input>,
): Promise<PasswordLink> {
  return orderPasswordLink(dependencies, actor, { login, sendsMail: sendMail });
}

function answerLink(
  { login, sendMail }: { readonly login: string; readonly sendMail: boolean },
  { url, expiresAtMs }: PasswordLink,
): z.output<typeof linkSchema> {
  return { login, link: sendMail ? null : url, expiresAtMs };
}
