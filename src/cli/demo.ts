/** Runs `trivet demo`: shows predictions and webhooks in a few minutes, with a service of its own. */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import type { App } from '../app.ts';
import { print } from '../command-line/output.ts';
import { type Environment, omitSettings, parseConfig, readEnvironment } from '../config/config.ts';
import { waitForStopSignal } from '../stop-signal.ts';
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
  const stopping = new AbortController();
  void waitForStopSignal().then(() => stopping.abort());
  await using undo = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), 'trivet-demo-'));
  undo.defer(() => rmSync(folder, { recursive: true, force: true }));
  const environment = makeDemoEnvironment(readEnvironment(), folder);
  const app = undo.use(await startOnFreePorts(environment));
  const { httpUrl, grpcAddress } = app;
  const stage: Stage = { folder, httpUrl, grpcAddress, environment, signal: stopping.signal };
  try {
    await show(stage);
    if (!options.exit) await waitForEnd(stage);
  } catch (error) {
    // An error that a stop causes is not reported.
    if (!stage.signal.aborted) throw error;
  }
}

/** Takes from the environment only where the demo listens, not the configured store, service or git repository. */
function makeDemoEnvironment(environment: Environment, folder: string): Environment {
  const { HOST, HTTP_PORT, GRPC_PORT } = environment;
  const others = Object.entries(omitSettings(environment)).filter(([name]) => !name.startsWith('GIT_'));
  return {
    ...Object.fromEntries(others),
    HOST,
    HTTP_PORT,
    GRPC_PORT,
    TRIVET_DATA_DIR: join(folder, 'data'),
    LOG_LEVEL: 'warn',
    // Deliveries to this machine are refused unless the configuration allows them; here the receiver is on this machine.
    WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8,::1/128',
  };
}

async function show(stage: Stage): Promise<void> {
  // The banner has no link to the first account: the demo creates that account.
  print(
    `Trivet is ready\n  HTTP  ${stage.httpUrl}\n  gRPC  ${stage.grpcAddress}\n  store ${stage.folder} (removed at the end)`,
  );
  await showPrediction(stage);
  await showWebhooks(stage);
}

async function waitForEnd(stage: Stage): Promise<void> {
  printNext(stage);
  if (!stage.signal.aborted) await once(stage.signal, 'abort');
}

/** The usual ports, or free ports when they are in use. */
async function startOnFreePorts(environment: Environment): Promise<App> {
  const { startApp } = await import('../app.ts');
  try {
    return await startApp(parseConfig(environment));
  } catch {
    return await startApp(parseConfig({ ...environment, HTTP_PORT: '0', GRPC_PORT: '0' }));
  }
}

/** Lists variables that would direct the commands elsewhere, or that belong to a file that they do not read. */
function listOtherSettings(environment: Environment): string[] {
  const kept = omitSettings(environment);
  const isOther = (name: string) => environment[name] && !(name in kept) && !DEMO_SETTINGS.includes(name);
  return Object.keys(environment).filter(isOther).sort();
}

/** The commands that are printed set these. */
const DEMO_SETTINGS = ['TRIVET_CONFIG', 'TRIVET_DATA_DIR'];

function printNext({ httpUrl, grpcAddress, folder }: Stage): void {
  const others = listOtherSettings(readEnvironment());
  const unset = others.length === 0 ? '' : `\n  unset ${others.join(' ')}   # they are for another store or service`;
  print(`
── Try next
  open ${httpUrl} and sign in as ${DEMO_LOGIN} with the password above: the console shows the model and the delivery
  curl ${httpUrl}/prediction.v1.PredictionService/Predict -H 'Content-Type: application/json' \\
    -d '{"targetModel":"demo-8b","inputs":[{"inputId":1,"serverIp":"large-0","inputTokenLength":2000,"numRequestRunning":8}]}'
  grpcurl -plaintext ${grpcAddress} list${unset}
  export TRIVET_CONFIG=/dev/null TRIVET_DATA_DIR=${join(folder, 'data')}   # then any trivet command works on this store
  npx trivet model list
  npx trivet model evaluate --input ${join(folder, 'trace.jsonl')} --protocol time --report report.html

The service keeps running; Ctrl-C stops it.`);
}
