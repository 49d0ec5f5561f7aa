/** Runs `trivet listen`: a receiver that verifies every signature and prints each delivery. */
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Command } from 'commander';
import { print, printJson, remark } from '../../command-line/output.ts';
import { durationIn } from '../../command-line/time-option.ts';
import { wholeNumber } from '../../command-line/whole-number.ts';
import { describeError, Failure, isSystemError } from '../../errors.ts';
import { waitForStopSignal } from '../../stop-signal.ts';
import { isSameSignature, signBody, signTimestamp, standardKey } from '../profiles/signature.ts';

const parseDelay = durationIn({ bareUnit: 'ms', minimum: 0, maximum: 3_600_000 });

interface ListenOptions {
  readonly port: number;
  readonly host: string;
  readonly secret?: string;
  readonly password?: string;
  readonly sign?: true;
  readonly status: number;
  readonly delay: number;
  readonly count?: number;
  readonly json?: boolean;
}

export function createListenCommand(): Command {
  return new Command('listen')
    .description('Receive webhooks, check their signature or password, and show them')
    .option('--port <number>', 'port, 0 for any free one', wholeNumber(0, 65_535), 9000)
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--secret <text>', 'signature key of the webhook (encryption_type 1); a wrong signature is answered 401')
    .option('--password <text>', 'password of the webhook (encryption_type 0); a wrong one is answered 401')
    .option('--sign', 'use --password as --secret')
    .option('--status <number>', 'answer with this status', wholeNumber(200, 599), 200)
    .option(
      '--delay <duration>',
      'wait this long before answering, as 20s; a number alone is milliseconds',
      parseDelay,
      0,
    )
    .option('--count <number>', 'stop after this many deliveries', wholeNumber(1, 1_000_000_000))
    .option('--json', 'one JSON object a delivery')
    .action(listen);
}

async function listen({ sign, ...given }: ListenOptions): Promise<void> {
  if (sign && !given.password && given.secret === undefined)
    throw new Failure('invalid', 'Cannot listen: --sign needs --password, the key of the signature');
  const { secret = sign ? given.password : undefined } = given;
  const options = { ...given, ...(secret === undefined ? {} : { secret }) };
  const done = Promise.withResolvers<void>();
  let received = 0;
  const server = createServer((request, response) => {
    receive(request, response, options)
      .then(() => {
        received += 1;
        if (received === options.count) done.resolve();
      })
      .catch((error: unknown) => remark(`A request was cut off: ${describeError(error)}`));
  });
  await startListening(server, options);
  const { port } = server.address() as AddressInfo;
  remark(`Listening on http://${options.host}:${port}/ (Ctrl-C ends)`);
  await Promise.race([done.promise, waitForStopSignal()]);
  server.close();
  server.closeIdleConnections();
}

async function startListening(server: Server, { host, port }: ListenOptions): Promise<void> {
  server.listen(port, host);
  try {
    await once(server, 'listening');
  } catch (error) {
    const isTaken = isSystemError(error) && error.code === 'EADDRINUSE';
    const reason = isTaken ? 'the port is taken; set --port to another one, or to 0 for any' : describeError(error);
    throw new Failure('unavailable', `Cannot listen on ${host}:${port}: ${reason}`, {}, { cause: error });
  }
}

async function receive(request: IncomingMessage, response: ServerResponse, options: ListenOptions): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const body = Buffer.concat(chunks);
  const verdict = checkProof(request.headers, body, options);
  const status = verdict.isRefused ? 401 : options.status;
  show(request, body, verdict, status, options);
  if (options.delay > 0) await sleep(options.delay);
  response.writeHead(status, { 'Content-Type': 'text/plain' }).end(`${verdict.text}\n`);
}

interface Verdict {
  readonly isRefused: boolean;
  readonly text: string;
}

/** Verifies a delivery as a receiver of each code host does. */
export function checkProof(
  headers: IncomingHttpHeaders,
  body: Buffer,
  { secret, password }: { readonly secret?: string; readonly password?: string },
): Verdict {
  if (secret !== undefined) return checkSignature(headers, body, Buffer.from(secret));
  if (password === undefined) return { isRefused: false, text: 'not checked' };
  const given = readHeader(headers, 'x-gitcode-token', 'x-gitee-token', 'x-gitlab-token');
  if (given !== undefined && isSameSignature(Buffer.from(given, 'latin1'), Buffer.from(password)))
    return { isRefused: false, text: 'password ok' };
  return { isRefused: true, text: given === undefined ? 'no password' : 'wrong password' };
}

/** For a day after a change of the key, `webhook-signature` also has a signature by the former key. The other headers have one. */
function checkSignature(headers: IncomingHttpHeaders, body: Buffer, key: Buffer): Verdict {
  const ofHost = checkHostSignature(headers, body, key);
  const standard = checkStandardSignature(headers, body, key);
  if (ofHost === false && standard === true)
    return { isRefused: false, text: 'signature ok, by a former key in webhook-signature' };
  const isRight = ofHost ?? standard;
  return isRight === undefined ? { isRefused: true, text: 'no signature' } : judge('signature', isRight);
}

/** Verifies the signature in the header of the code host; undefined without such a header. */
function checkHostSignature(headers: IncomingHttpHeaders, body: Buffer, key: Buffer): boolean | undefined {
  const ofBody = readHeader(headers, 'x-gitcode-signature-256', 'x-hub-signature-256');
  if (ofBody !== undefined) return isSameSignature(Buffer.from(signBody(key, body)), Buffer.from(ofBody));
  const gitee = readHeader(headers, 'x-gitee-token');
  if (gitee === undefined) return undefined;
  const expected = signTimestamp(key, Number(readHeader(headers, 'x-gitee-timestamp')));
  return isSameSignature(Buffer.from(expected), Buffer.from(gitee));
}

/** Verifies the signature of Standard Webhooks; undefined without its header. */
function checkStandardSignature(headers: IncomingHttpHeaders, body: Buffer, key: Buffer): boolean | undefined {
  const standard = readHeader(headers, 'webhook-signature');
  if (standard === undefined) return undefined;
  const signed = `${readHeader(headers, 'webhook-id')}.${readHeader(headers, 'webhook-timestamp')}.`;
  const expected = `v1,${createHmac('sha256', standardKey(key)).update(signed).update(body).digest('base64')}`;
  return standard.split(' ').some((one) => isSameSignature(Buffer.from(expected), Buffer.from(one)));
}

function judge(proof: string, isRight: boolean): Verdict {
  return isRight ? { isRefused: false, text: `${proof} ok` } : { isRefused: true, text: `wrong ${proof}` };
}

function readHeader(headers: IncomingHttpHeaders, ...names: string[]): string | undefined {
  const name = names.find((candidate) => headers[candidate] !== undefined);
  return name && String(headers[name]);
}

const SHOWN_HEADERS = /^(x-|webhook-|user-agent|content-type)/;

function show(request: IncomingMessage, body: Buffer, verdict: Verdict, status: number, { json }: ListenOptions): void {
  const { method, url: path, headers } = request;
  if (json) {
    printJson({ method, path, status, verdict: verdict.text, headers, body: tryParse(body) });
    return;
  }
  const event = readHeader(headers, 'x-gitcode-event', 'x-gitee-event', 'x-github-event', 'x-gitlab-event') ?? '';
  print(`${method} ${path}  ${event}  ${verdict.text}  → ${status}`);
  for (const [name, value] of Object.entries(headers))
    if (SHOWN_HEADERS.test(name)) print(`  ${name}: ${String(value)}`);
  const parsed = tryParse(body);
  print(typeof parsed === 'string' ? parsed : JSON.stringify(parsed, null, 2));
  print('');
}

function tryParse(body: Buffer): unknown {
  const text = body.toString('utf8');
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
