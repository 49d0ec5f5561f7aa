/** Runs `trivet demo`: shows predictions and webhooks in a few minutes, with a service of its own. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import type { App } from '../app.ts';
import { print } from '../command-line/output.ts';
import { parseConfig, readEnvironment } from '../config/config.ts';
import { showPrediction } from './demo/show-prediction.ts';
import { DEMO_LOGIN, showWebhooks } from './demo/show-webhooks.ts';
import type { Stage } from './demo/stage.ts';

export function createDemoCommand(): Command {
  return new Command('demo')
    .description('Start the service on a temporary store, show what it does, and keep running')
    .option('--exit', 'stop when everything was shown')
    .action(runDemo);
}

async function runDemo(options: { readonly exit?: boolean }): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-demo-'));
  // Deliveries to this machine are refused unless the configuration allows them; here the receiver is on this machine.
  const environment = {
    ...readEnvironment(),
    TRIVET_DATA_DIR: join(folder, 'data'),
    LOG_LEVEL: 'warn',
    WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8,::1/128',
    DATABASE_URL: undefined,
  };
  const app = await startOnFreePorts(environment);
  const stage: Stage = { folder, httpUrl: app.httpUrl, grpcAddress: app.grpcAddress, environment };
  try {
    // Without the link to the first account: the demo makes that account itself.
    print(
      `Trivet is ready\n  HTTP  ${app.httpUrl}\n  gRPC  ${app.grpcAddress}\n  store ${stage.folder} (removed at the end)`,
    );
    await showPrediction(stage);
    await showWebhooks(stage);
    if (options.exit) return;
    printNext(stage);
    await waitForSignal();
  } finally {
    await app[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The usual ports, or free ports when they are in use. */
async function startOnFreePorts(environment: Readonly<Record<string, string | undefined>>): Promise<App> {
  const { startApp } = await import('../app.ts');
  try {
    return await startApp(parseConfig(environment));
  } catch {
    return await startApp(parseConfig({ ...environment, HTTP_PORT: '0', GRPC_PORT: '0' }));
  }
}

function printNext({ httpUrl, grpcAddress, folder }: Stage): void {
  print(`
── Try next
  open ${httpUrl} and sign in as ${DEMO_LOGIN} with the password above: the console shows the model and the delivery
  curl ${httpUrl}/prediction.v1.PredictionService/Predict -H 'Content-Type: application/json' \\
    -d '{"targetModel":"demo-8b","inputs":[{"inputId":1,"serverIp":"large-0","inputTokenLength":2000,"numRequestRunning":8}]}'
  grpcurl -plaintext ${grpcAddress} list
  export TRIVET_DATA_DIR=${join(folder, 'data')}   # then any trivet command works on this store
  npx trivet model list
  npx trivet model evaluate --input ${join(folder, 'trace.jsonl')} --protocol time --report report.html

The service keeps running; Ctrl-C stops it.`);
}

function waitForSignal(): Promise<void> {
  return new Promise((resolve) => {
    process.once('SIGINT', () => resolve());
    process.once('SIGTERM', () => resolve());
  });
}
