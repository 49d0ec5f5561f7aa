/** Creates the statement by which an area queues a mail in its transaction. */
import type { Config } from '../config/config.ts';
import type { BoundStatement } from '../database/store.ts';
import type { SecretCipher } from '../encryption/secret-cipher.ts';
import type { World } from '../world.ts';
import type { Mail } from './mail.ts';
import { insertMailStatement, mailAssociatedData } from './mail-store.ts';

export interface Mailer {
  /** Returns a statement for the transaction that causes the mail. `lifetimeMs`: how long sending is worthwhile, two days by default. */
  queueStatement(mail: Mail, lifetimeMs?: number): BoundStatement;
}

const LIFETIME_MS = 2 * 86_400_000;

export function createMailer({ cipher, world }: { readonly cipher: SecretCipher; readonly world: World }): Mailer {
  return {
    queueStatement(mail, lifetimeMs = LIFETIME_MS) {
      const id = world.uuid();
      const nowMs = world.nowMs();
      const content = cipher.encrypt(JSON.stringify(mail), mailAssociatedData(id));
      return insertMailStatement({ id, content, nowMs, expiresAtMs: nowMs + lifetimeMs });
    },
  };
}

/** Whether a mail server is configured. */
export function isMailOn(
  config: Config['mail'],
): config is Config['mail'] & { readonly host: string; readonly from: string } {
  return config.host !== undefined && config.from !== undefined;
}
