/** Starts the target of events: the real program of a checkout, or the floor. Each has its own database and its own receiver. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { NODE_FLAGS } from '../../test/support/programs/start-program.ts';
import { type PublishingService, startPublishingService } from '../../test/support/webhooks/publishing-service.ts';
import type { FloorCommand } from './floor-server.ts';
import { type EngineTitle, openPlace } from './places.ts';
import { type Receiver, startReceiver } from './processes.ts';

const REPOSITORIES = 16;

export interface Target extends AsyncDisposable {
  readonly urls: readonly string[];
  readonly token: string;
  readonly pids: readonly number[];
  readonly databasePid: number;
  readonly receiver: Receiver;
  /** Paths for events without deliveries, and of those with one delivery each. */
  readonly bare: readonly string[];
  readonly hooked: readonly string[];
}

/** The folder of a checkout whose program is started, or the floor. */
export type TargetPlace = { readonly folder: string } | 'floor';

export async function openTarget(engine: EngineTitle, processes: number, place: TargetPlace): Promise<Target> {
  await using undo = new AsyncDisposableStack();
  const { options, databasePid, stop } = await openPlace(engine);
  undo.defer(stop);
  const receiver = await startReceiver();
  undo.defer(() => receiver.stop());
  const started =
    place === 'floor'
      ? undo.use(await startFloor(options, receiver))
      : undo.use(await startPrograms({ ...options, processes, folder: place.folder }, receiver));
  const owned = undo.move();
  return { ...started, databasePid, receiver, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

type Started = Omit<Target, 'databasePid' | 'receiver'>;

async function startFloor(place: FloorCommand, receiver: Receiver): Promise<Started> {
  const child = fork(join(import.meta.dirname, 'floor-server.ts'), { stdio: 'inherit', execArgv: NODE_FLAGS });
  child.send({ dataDir: place.dataDir, databaseUrl: place.databaseUrl } satisfies FloorCommand);
  const [{ port }] = (await once(child, 'message')) as [{ readonly port: number }];
  return {
    urls: [`http://127.0.0.1:${port}`],
    token: '',
    pids: [child.pid ?? 0],
    bare: ['/bare'],
    hooked: listPorts(receiver).map((one) => `/hooked/${one}`),
    [Symbol.asyncDispose]: async () => {
      child.disconnect();
      await once(child, 'exit');
    },
  };
}

interface ProgramsPlace extends FloorCommand {
  readonly processes: number;
  readonly folder: string;
}

async function startPrograms(place: ProgramsPlace, receiver: Receiver): Promise<Started> {
  const { dataDir, databaseUrl, processes, folder } = place;
  const service = await startPublishingService({ place: { dataDir, databaseUrl }, processes, urls: [], folder });
  const { programs, token } = service;
  return {
    urls: programs.map(({ httpUrl }) => httpUrl),
    token,
    pids: programs.map(({ pid }) => pid),
    ...(await createRepositories(service, receiver)),
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  };
}

function listPorts({ ports }: Receiver): readonly number[] {
  return ports.slice(0, REPOSITORIES);
}

/** Repositories without a webhook, and repositories with one each. */
async function createRepositories(service: PublishingService, receiver: Receiver) {
  const bare: string[] = [];
  const hooked: string[] = [];
  for (const [index, port] of listPorts(receiver).entries()) {
    for (const [paths, name] of [
      [bare, `bare-${index}`],
      [hooked, `hooked-${index}`],
    ] as const) {
      await service.call('POST', '/api/v5/user/repos', { name });
      paths.push(`/api/v5/repos/grace/${name}/events`);
    }
    const hook = { url: `http://127.0.0.1:${port}/`, password: 'key' };
    await service.call('POST', `/api/v5/repos/grace/hooked-${index}/hooks`, hook);
  }
  return { bare, hooked };
}
