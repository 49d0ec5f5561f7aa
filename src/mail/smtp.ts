/** Sends a mail through the SMTP server of the settings, with TLS and its timeouts. */
import { readFileSync } from 'node:fs';
import type { Config } from '../config/config.ts';
import { describeError, Failure } from '../errors.ts';
import { type Mail, renderMail } from './mail.ts';
import { isMailOn } from './mailer.ts';

export type MailConfig = Config['mail'];

export interface Smtp {
  /** Resolves when the server has taken the mail. Throws `SmtpRefusal`, or `unavailable` where another attempt can help. */
  send(mail: Mail, id: string): Promise<void>;
  /** Connects and signs in. Throws `unavailable`. */
  check(): Promise<void>;
}

const CONNECT_MS = 10_000;
/** The longest time without a byte from the server. */
const SILENCE_MS = 20_000;

/** Undefined: no server is set, mail is off. */
export function openSmtp(config: MailConfig): Smtp | undefined {
  if (!isMailOn(config)) return undefined;
  const { host, from } = config;
  const loadTransport = prepareTransport(toOptions(config, host));
  const domain = /@([^\s>]+)>?$/.exec(from)?.[1] ?? 'localhost';
  return {
    async send(mail, id) {
      // An object is one recipient, whatever is in it; a text with commas would be several.
      const to = { name: '', address: mail.to };
      // The id stays the same at every attempt, so that a mail system can know a second copy.
      const envelope = { from, to, subject: mail.subject, messageId: `<${id}@${domain}>` };
      const headers = { 'Auto-Submitted': 'auto-generated' };
      const message = { ...envelope, ...(await renderMail(mail)), headers };
      const transport = await loadTransport();
      await transport.sendMail(message).catch((error: unknown) => {
        throw toFailure(error, host);
      });
    },
    async check() {
      const transport = await loadTransport();
      await transport.verify().catch((error: unknown) => {
        throw toFailure(error, host);
      });
    },
  };
}

/** The client is loaded with the first mail: it is a tenth of what a program without mail would load when it starts. */
function prepareTransport(options: ReturnType<typeof toOptions>) {
  const open = async () => (await import('nodemailer')).createTransport(options);
  let transport: ReturnType<typeof open> | undefined;
  return () => {
    transport ??= open();
    return transport;
  };
}

function toOptions({ port, security, user, password, caFile }: MailConfig, host: string) {
  const tls = caFile === undefined ? {} : { tls: { ca: readFileSync(caFile) } };
  return {
    host,
    port: port ?? DEFAULT_PORTS[security],
    secure: security === 'tls',
    requireTLS: security === 'starttls',
    ignoreTLS: security === 'none',
    connectionTimeout: CONNECT_MS,
    greetingTimeout: CONNECT_MS,
    socketTimeout: SILENCE_MS,
    // The content of a mail is never read from a file or an address.
    disableFileAccess: true,
    disableUrlAccess: true,
    ...(user === undefined ? {} : { auth: { user, pass: password ?? '' } }),
    ...tls,
  };
}

/** RFC 8314 §3.3, RFC 6409 §3.1. */
const DEFAULT_PORTS = { tls: 465, starttls: 587, none: 25 } as const;

/** `isFinal`: the server refused this recipient or this content for good (RFC 5321 §4.2.1); a refused password is the settings' fault. */
function toFailure(error: unknown, host: string): Failure {
  const { responseCode = 0, command = '' } = error as { responseCode?: number; command?: string };
  const isFinal = responseCode >= 500 && /^(RCPT TO|DATA)/.test(command);
  return new Failure('unavailable', `Cannot send mail by "${host}": ${describeError(error)}`, { isFinal });
}
