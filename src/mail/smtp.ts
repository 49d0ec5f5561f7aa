/** Sends a mail by SMTP: with TLS, STARTTLS or neither, within time limits; reports which refusals are final. */
import type { Readable } from 'node:stream';
import type { Config } from '../config/config.ts';
import { readCertificates } from '../encryption/certificates.ts';
import { describeError, Failure } from '../errors.ts';
import { type Mail, renderMail } from './mail.ts';
import { isMailOn } from './mailer.ts';

export type MailConfig = Config['mail'];

export interface Smtp {
  /**
   * Resolves when the server has accepted the mail. Throws `unavailable`, with `isFinal` in its details if a retry is useless.
   * After the signal it ends within `LIMITS.stopMs`.
   */
  send(mail: Mail, id: string, signal?: AbortSignal): Promise<void>;
  /** Connects and signs in. Throws `unavailable`. */
  check(): Promise<void>;
}

export interface SmtpLimits {
  /** From the connection until the content has been sent. */
  readonly untilSentMs: number;
  /** From then until the reply. A client that gives up sooner sends copies of mails that a slow server has accepted. */
  readonly replyMs: number;
  /** How long an attempt may continue when the process stops. */
  readonly stopMs: number;
}

/** The time limits in milliseconds; that of the reply follows RFC 5321 §4.5.3.2.6. */
export const LIMITS: SmtpLimits = { untilSentMs: 120_000, replyMs: 600_000, stopMs: 5000 };

const CONNECT_MS = 10_000;
/** How long `check` waits for each reply. */
const SILENCE_MS = 20_000;

/** Returns undefined if no server is configured (mail is off). Throws `invalid` when the file of authorities cannot be used. */
export function openSmtp(config: MailConfig, limits = LIMITS): Smtp | undefined {
  if (!isMailOn(config)) return undefined;
  const { host, from } = config;
  const options = toOptions(config, host);
  const domain = /@([^\s>]+)>?$/.exec(from)?.[1] ?? 'localhost';
  return {
    async send(mail, id, stop) {
      // An object is always one recipient; a text with commas would be several.
      const to = { name: '', address: mail.to };
      // The id stays the same at every attempt, so that a mail system can recognize a second copy.
      const envelope = { from, to, subject: mail.subject, messageId: `<${id}@${domain}>` };
      const headers = { 'Auto-Submitted': 'auto-generated' };
      const message = { ...envelope, ...(await renderMail(mail)), headers };
      const transport = await openTransport({ ...options, socketTimeout: limits.replyMs });
      using attempt = limitAttempt(limits, stop);
      transport.use('stream', (sending, done) => {
        onceRead(sending.message, attempt.expectReply);
        done();
      });
      await transport.sendMail({ ...message, signal: attempt.signal }).catch((error: unknown) => {
        throw toFailure(attempt.signal.reason ?? error, host);
      });
    },
    async check() {
      const transport = await openTransport({ ...options, socketTimeout: SILENCE_MS });
      await transport.verify().catch((error: unknown) => {
        throw toFailure(error, host);
      });
    },
  };
}

/** Ends one attempt when it takes too long, and soon after `stop`. */
function limitAttempt({ untilSentMs, replyMs, stopMs }: SmtpLimits, stop?: AbortSignal) {
  const ending = new AbortController();
  const endAfter = (ms: number, reason: string) => setTimeout(() => ending.abort(new Error(reason)), ms);
  let timer = endAfter(untilSentMs, `it did not take the mail within ${untilSentMs / 1000} s`);
  let stopTimer: ReturnType<typeof setTimeout> | undefined;
  const onStop = () => {
    stopTimer ??= endAfter(stopMs, 'the service stops');
  };
  if (stop?.aborted === true) onStop();
  stop?.addEventListener('abort', onStop);
  return {
    signal: ending.signal,
    expectReply: () => {
      clearTimeout(timer);
      timer = endAfter(replyMs, `it did not reply to the mail within ${replyMs / 1000} s`);
    },
    [Symbol.dispose]: () => {
      clearTimeout(timer);
      clearTimeout(stopTimer);
      stop?.removeEventListener('abort', onStop);
    },
  };
}

/** Calls back when the client has read the whole message to send it. */
function onceRead(message: ReadableMessage, callback: () => void): void {
  const create = message.createReadStream.bind(message);
  message.createReadStream = (options) => create(options).once('end', callback);
}

interface ReadableMessage {
  createReadStream(options?: object): Readable;
}

/** The client is loaded with the first mail: it is a tenth of all code that a program without mail loads when it starts. */
async function openTransport(options: ReturnType<typeof toOptions> & { readonly socketTimeout: number }) {
  return (await import('nodemailer')).createTransport(options);
}

function toOptions({ port, security, user, password, caFile }: MailConfig, host: string) {
  const tls = caFile === undefined ? {} : { tls: { ca: readAuthorities(caFile) } };
  return {
    host,
    port: port ?? DEFAULT_PORTS[security],
    secure: security === 'tls',
    requireTLS: security === 'starttls',
    ignoreTLS: security === 'none',
    connectionTimeout: CONNECT_MS,
    greetingTimeout: CONNECT_MS,
    // The content of a mail is never read from a file or a URL.
    disableFileAccess: true,
    disableUrlAccess: true,
    ...(user === undefined ? {} : { auth: { user, pass: password ?? '' } }),
    ...tls,
  };
}

function readAuthorities(file: string): string[] {
  try {
    return readCertificates(file);
  } catch (cause) {
    const message = `SMTP_CA_FILE "${file}" cannot be used: ${describeError(cause)}`;
    throw new Failure('invalid', message, {}, { cause });
  }
}

/** RFC 8314 §3.3, RFC 6409 §3.1. */
const DEFAULT_PORTS = { tls: 465, starttls: 587, none: 25 } as const;

/** `isFinal`: the server refused this recipient or this content for good (RFC 5321 §4.2.1); a refused password is the settings' fault. */
function toFailure(error: unknown, host: string): Failure {
  const { responseCode = 0, command = '' } = error as { responseCode?: number; command?: string };
  const isFinal = responseCode >= 500 && /^(RCPT TO|DATA)/.test(command);
  return new Failure('unavailable', `Cannot send mail by "${host}": ${describeError(error)}`, { isFinal });
}
