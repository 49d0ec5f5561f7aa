/** Areas send mail by a statement that makes the mail wait. */
import type { BoundStatement, Store } from '../database/store.ts';
import type { SecretCipher } from '../encryption/secret-cipher.ts';
import { withSteadyClock } from '../steady-clock.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Worker } from '../workers/worker.ts';
import type { World } from '../world.ts';
import type { Mail } from './mail.ts';
import { createMailMetrics } from './mail-metrics.ts';
import { insertMailStatement, mailAssociatedData } from './mail-store.ts';
import { createMailWorker } from './mail-worker.ts';
import type { Smtp } from './smtp.ts';

export interface Mailer {
  /** Put it into the unit that causes the mail. `lifetimeMs`: how long it is worth sending, two days by default. */
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

export interface MailDependencies {
  readonly store: Store;
  readonly cipher: SecretCipher;
  readonly world: World;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Undefined: mail is off. */
  readonly smtp: Smtp | undefined;
}

/** The mailer of this process and its worker; undefined while mail is off. */
export function createMail({
  smtp,
  metrics,
  ...rest
}: MailDependencies): { readonly mailer: Mailer; readonly worker: Worker } | undefined {
  if (smtp === undefined) return undefined;
  const dependencies = { ...rest, world: withSteadyClock(rest.world) };
  const count = createMailMetrics(metrics, rest.store);
  return { mailer: createMailer(dependencies), worker: createMailWorker({ ...dependencies, smtp, count }) };
}
