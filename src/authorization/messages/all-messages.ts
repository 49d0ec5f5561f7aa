/** Collects every English message of authorization. */
import { frameTexts } from '../../pages/frame-texts.ts';
import { accountMessages } from './account-messages.ts';
import { audit, methods } from './audit-messages.ts';
import { peopleMessages } from './people-messages.ts';
import { scopes } from './scope-descriptions.ts';
import { signInMessages } from './sign-in-messages.ts';

export const allMessages = {
  ...frameTexts,
  audit,
  scopes,
  methods,
  shownBefore: 'This secret was shown before and cannot be shown again. Make a new one if you did not copy it.',
  ...signInMessages,
  ...accountMessages,
  ...peopleMessages,
} as const;
