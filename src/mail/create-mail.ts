/** Creates the mailer of the service and the worker that sends waiting mails. Commands only queue mails, and do not load this. */
import type { Store } from '../database/store.ts';
import type { SecretCipher } from '../encryption/secret-cipher.ts';
import { withSteadyClock } from '../steady-clock.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Worker } from '../workers/worker.ts';
import type { World } from '../world.ts';
import { createMailMetrics } from './mail-metrics.ts';
import { createMailWorker } from './mail-worker.ts';
import { createMailer, type Mailer } from './mailer.ts';
import type { Smtp } from './smtp.ts';

export interface MailDependencies {
  readonly store: Store;
  readonly cipher: SecretCipher;
  readonly world: World;
  readonly log: Log;
  readonly metrics: Metrics;
  /** The mailer; undefined while mail is off. */
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
