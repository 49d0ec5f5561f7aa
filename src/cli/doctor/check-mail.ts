/** Checks the mail server for `trivet doctor`: reachable, encrypted, accepts the password. */
import type { Config } from '../../config/config.ts';
import { describeError } from '../../errors.ts';
import { openSmtp } from '../../mail/smtp.ts';
import { type Check, fail, ok } from './check.ts';

export async function checkMail({ mail }: Config): Promise<Check> {
  try {
    const smtp = openSmtp(mail);
    if (smtp === undefined) return ok('mail', 'is off: SMTP_HOST is not set');
    await smtp.check();
    return ok('mail', `"${mail.host}" answers, and takes mail from ${mail.from}`);
  } catch (error) {
    const advice = 'Check SMTP_HOST, SMTP_PORT, SMTP_SECURITY, SMTP_USER, SMTP_PASSWORD and SMTP_CA_FILE';
    return fail('mail', describeError(error), advice);
  }
}
