/** Collects every Chinese message of authorization. */
import type { Texts } from '../../language/texts.ts';
import { frameTextsZh } from '../../pages/frame-texts-zh.ts';
import { accountMessagesZh } from './account-messages-zh.ts';
import type { allMessages } from './all-messages.ts';
import { auditZh, methodsZh } from './audit-messages-zh.ts';
import { peopleMessagesZh } from './people-messages-zh.ts';
import { scopesZh } from './scope-descriptions-zh.ts';
import { signInMessagesZh } from './sign-in-messages-zh.ts';

export const allMessagesZh: Texts<typeof allMessages> = {
  ...frameTextsZh,
  audit: auditZh,
  methods: methodsZh,
  scopes: scopesZh,
  shownBefore: '此密钥已显示过，不能再次显示。如果没有复制，请重新生成。',
  ...signInMessagesZh,
  ...accountMessagesZh,
  ...peopleMessagesZh,
};
