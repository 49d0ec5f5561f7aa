/** Collects the settings of all sections, from which the reference is generated. */
import { authorizationSettings } from './authorization-settings.ts';
import { mailSettings } from './mail-settings.ts';
import { predictionSettings } from './prediction-settings.ts';
import { grpcSettings, logSettings, serverSettings, storeSettings, tracingSettings } from './server-settings.ts';
import { webhookSettings } from './webhook-settings.ts';

/**
 * All settings by section. The section and the name, in snake case, are its place in `trivet.toml`;
 * `docs/reference/configuration.md` is generated from this table.
 */
export const settings = {
  server: serverSettings,
  grpc: grpcSettings,
  store: storeSettings,
  log: logSettings,
  tracing: tracingSettings,
  authorization: authorizationSettings,
  mail: mailSettings,
  prediction: predictionSettings,
  webhooks: webhookSettings,
} as const;
