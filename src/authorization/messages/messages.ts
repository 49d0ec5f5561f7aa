/** Every message of these pages, so that another language is another object of this shape. */
import { frameTexts } from '../../pages/texts.ts';
import { accountMessages } from './account-messages.ts';
import { audit, methods } from './audit-messages.ts';
import { peopleMessages } from './people-messages.ts';
import { signInMessages } from './sign-in-messages.ts';

export const messages = {
  ...frameTexts,
  audit,
  methods,
  shownBefore: 'This secret was shown before and cannot be shown again. Make a new one if you did not copy it.',
  ...signInMessages,
  ...accountMessages,
  ...peopleMessages,
} as const;
