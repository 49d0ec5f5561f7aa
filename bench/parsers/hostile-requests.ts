/** Sends hostile heads and bodies to sockets of the real program, and measures the processor time that they take there. */
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { connectRaw } from '../../test/support/grpc/grpc-client.ts';
import { type Program, startProgram } from '../../test/support/programs/start-program.ts';

export interface HostileRequest {
  readonly name: string;
  readonly bytes: number;
  readonly half: () => Promise<number>;
  readonly whole: () => Promise<number>;
}

export interface HostileRequests extends AsyncDisposable {
  readonly list: readonly HostileRequest[];
}

const TIMES = 20;
const HEAD_BYTES = 14_000;
const FORM_BYTES = 16_384;
const BODY_BYTES = 1_048_576;
const FORM = 'application/x-www-form-urlencoded';
const MULTIPART = 'multipart/form-data; boundary=b';
const PREDICT = '/prediction.v1.PredictionService/Predict';
const REPORT = '/observation.v1.ObservationService/ReportBatch';

type Send = (text: string) => Promise<unknown>;
type Case = readonly [name: string, bytes: number, text: string, send: Send];

export async function openHostileRequests(): Promise<HostileRequests> {
  const program = await startProgram({ PREDICTION_AUTH: 'off', LOG_LEVEL: 'silent', TRUSTED_PROXIES: '127.0.0.1' });
  const client = connectRaw(program.grpcAddress);
  const list = [...listHttp(program), ...listGrpc((path, bytes) => client.unary(path, bytes))].map(
    ([name, bytes, text, send]): HostileRequest => ({
      name,
      bytes,
      half: () => measure(program, () => send(fill(text, bytes / 2))),
      whole: () => measure(program, () => send(fill(text, bytes))),
    }),
  );
  return {
    list,
    [Symbol.asyncDispose]: async () => {
      client[Symbol.dispose]();
      await program[Symbol.asyncDispose]();
    },
  };
}

function fill(text: string, bytes: number): string {
  return text.repeat(Math.floor(bytes / text.length));
}

function listHttp({ httpUrl }: Program): Case[] {
  const request = async (path: string, init: RequestInit): Promise<void> => {
    const response = await fetch(httpUrl + path, { ...init, redirect: 'manual' });
    await response.arrayBuffer();
  };
  const head =
    (name: string): Send =>
    (text) =>
      request('/sign-in', { headers: { [name]: text } });
  const body =
    (path: string, type: string): Send =>
    (text) =>
      request(path, { method: 'POST', body: text, headers: { 'content-type': type, origin: httpUrl } });
  const part = '--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n';
  return [
    ['HTTP head: cookies', HEAD_BYTES, 'a=b;', head('cookie')],
    ['HTTP head: proxies', HEAD_BYTES, '127.0.0.1,', head('x-forwarded-for')],
    ['HTTP head: a token', HEAD_BYTES, 'a ', head('authorization')],
    ['HTTP head: languages', HEAD_BYTES, 'a;q=0,', head('accept-language')],
    ['HTTP head: dots', HEAD_BYTES, 'a/../', (text) => request(`/${text}`, {})],
    ['HTTP head: a query', HEAD_BYTES, 'a&', (text) => request(`/sign-in?${text}`, {})],
    ['device start: a form', FORM_BYTES, 'a=%41&', body('/oauth/device', FORM)],
    ['device start: scopes', FORM_BYTES, 'scope=a+', body('/oauth/device', FORM)],
    ['token: a form', FORM_BYTES, 'a&', body('/oauth/token', FORM)],
    ['token: multipart', FORM_BYTES, part, body('/oauth/token', MULTIPART)],
    ['token: JSON', FORM_BYTES, '{"a":', body('/oauth/token', 'application/json')],
    ['Predict, JSON: brackets', BODY_BYTES, '[', body(PREDICT, 'application/json')],
    [
      'Predict, JSON: no inputs',
      BODY_BYTES,
      '{},',
      (text) => body(PREDICT, 'application/json')(`{"inputs":[${text}{}]}`),
    ],
    ['Predict, bytes: fields that are unknown', BODY_BYTES, 'z\0', body(PREDICT, 'application/proto')],
    ['Report, JSON lines', BODY_BYTES, '{}\n', body('/observation.v1.ObservationService/Report', 'application/jsonl')],
  ];
}

function listGrpc(call: (path: string, bytes: Uint8Array) => Promise<unknown>): Case[] {
  const send =
    (path: string): Send =>
    (text) =>
      call(path, Buffer.from(text, 'latin1')).catch(() => {});
  return [
    ['Predict, gRPC: fields that are unknown', 4 * BODY_BYTES - 1000, 'z\0', send(PREDICT)],
    ['Predict, gRPC: empty inputs', 4 * BODY_BYTES - 1000, '\x12\0', send(PREDICT)],
    ['ReportBatch, gRPC: empty events', 4 * BODY_BYTES - 1000, '\x0a\0', send(REPORT)],
    ['ReportBatch, gRPC: groups', 4 * BODY_BYTES - 1000, '\x0b', send(REPORT)],
  ];
}

/** Milliseconds of all threads of the program for one request. */
async function measure({ pid }: Program, run: () => Promise<unknown>): Promise<number> {
  const before = readProcessorMs(pid);
  for (let time = 0; time < TIMES; time++) await run();
  // The kernel updates the time of a thread when the thread sleeps.
  await sleep(20);
  return (readProcessorMs(pid) - before) / TIMES;
}

function readProcessorMs(pid: number): number {
  const times = readdirSync(`/proc/${pid}/task`).map((thread) => {
    const [running] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ');
    return Number(running);
  });
  return times.reduce((sum, nanoseconds) => sum + nanoseconds, 0) / 1e6;
}
