/** Lists the settings of mail: the SMTP server, its password, the sender. */
import { choice, integer, optional, setting, text } from './setting.ts';

export const mailSettings = {
  host: optional({
    env: 'SMTP_HOST',
    about: 'Mail server (SMTP) that sends mails to people. Without it, no mail is sent.',
    schema: text,
  }),
  port: optional({
    env: 'SMTP_PORT',
    about: 'Its port. Defaults to 587 with `starttls`, 465 with `tls` and 25 with `none`.',
    schema: integer(1, 65535),
  }),
  security: setting({
    env: 'SMTP_SECURITY',
    about:
      'How the connection is encrypted: `starttls` (nothing is sent without it), `tls` from the first byte, or `none`.',
    schema: choice('starttls', 'tls', 'none'),
    fallback: 'starttls',
  }),
  user: optional({
    env: 'SMTP_USER',
    about: 'User name of the service at the mail server.',
    schema: text,
  }),
  password: optional({
    env: 'SMTP_PASSWORD',
    about: 'Password of that user.',
    schema: text,
    secret: true,
  }),
  caFile: optional({
    env: 'SMTP_CA_FILE',
    about:
      'Certificates (PEM) of authorities of your own that may have signed the certificate of the mail server, in place of the public authorities.',
    schema: text,
  }),
  from: optional({
    env: 'MAIL_FROM',
    about: 'Sender of the mails, as `trivet@example.org` or `Trivet <trivet@example.org>`.',
    schema: text.refine(isSender, 'must be an email address, or a name and an address as Trivet <trivet@example.org>'),
  }),
} as const;

function isSender(value: string): boolean {
  return /^([^<>"\r\n]+ <[^\s@<>"]+@[^\s@<>"]+>|[^\s@<>"]+@[^\s@<>"]+)$/.test(value);
}
