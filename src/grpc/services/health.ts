/** Serves `grpc.health.v1`: whether each service is ready, once or as a watch. */
import { Failure } from '../../errors.ts';
import type { GrpcService } from '../call/service.ts';
import { WireReader } from '../protobuf/wire-reader.ts';

/** The longest request: it has little but the name of a service. */
const MAX_REQUEST_BYTES = 16_384;
/** ServingStatus of `grpc.health.v1`. */
const SERVING = 1;
const NOT_SERVING = 2;
const SERVICE_UNKNOWN = 3;

export interface Health {
  readonly service: GrpcService;
  /** Sets the answer of later checks, and sends it to all watches. */
  setServing(isServing: boolean): void;
}

/** A watch keeps no service name, which may be long. */
interface Watcher {
  readonly isOfKnown: boolean;
  readonly send: (message: Uint8Array) => void;
  sent: number | undefined;
}

/** `grpc.health.v1.Health` for the whole server (the empty name) and for each service. All have the same status. */
export function createHealth(serviceNames: readonly string[]): Health {
  const known = new Set(['', ...serviceNames]);
  let status = NOT_SERVING;
  const watchers = new Set<Watcher>();
  const statusOf = (name: string): number => (known.has(name) ? status : SERVICE_UNKNOWN);

  function tell(watcher: Watcher): void {
    const current = watcher.isOfKnown ? status : SERVICE_UNKNOWN;
    if (current !== watcher.sent) watcher.send(encodeStatus(current));
    watcher.sent = current;
  }

  function watch(request: Uint8Array, send: Watcher['send']): () => void {
    const watcher: Watcher = { isOfKnown: known.has(readName(request)), send, sent: undefined };
    watchers.add(watcher);
    tell(watcher);
    return () => watchers.delete(watcher);
  }

  return {
    setServing: (isServing) => {
      status = isServing ? SERVING : NOT_SERVING;
      for (const watcher of watchers) tell(watcher);
    },
    service: {
      name: 'grpc.health.v1.Health',
      methods: [
        {
          kind: 'unary',
          name: 'Check',
          maxMessageBytes: MAX_REQUEST_BYTES,
          handle: (request) => check(readName(request), statusOf),
        },
        { kind: 'unary', name: 'List', maxMessageBytes: MAX_REQUEST_BYTES, handle: () => encodeList(known, status) },
        { kind: 'watch', name: 'Watch', maxMessageBytes: MAX_REQUEST_BYTES, keepsNoBytes: true, watch },
      ],
    },
  };
}

function check(name: string, statusOf: (name: string) => number): Uint8Array {
  const status = statusOf(name);
  if (status === SERVICE_UNKNOWN) throw new Failure('not_found', `Cannot check "${name}": no such service`);
  return encodeStatus(status);
}

/** HealthCheckRequest: `service` is field 1. */
function readName(request: Uint8Array): string {
  const reader = new WireReader(request);
  let name = '';
  while (reader.hasMore()) {
    const tag = reader.readTag();
    if (tag === 0x0a) name = reader.readString();
    else reader.skip(tag);
  }
  return name;
}

/** HealthCheckResponse: `status` is field 1. */
function encodeStatus(status: number): Uint8Array {
  return Uint8Array.of(0x08, status);
}

/** HealthListResponse: `statuses` is a map, field 1. */
function encodeList(names: ReadonlySet<string>, status: number): Uint8Array {
  const entries = [...names].map((name) => {
    const key = Buffer.from(name);
    const entry = Buffer.concat([Buffer.from([0x0a, key.length]), key, Buffer.from([0x12, 2, 0x08, status])]);
    return Buffer.concat([Buffer.from([0x0a, entry.length]), entry]);
  });
  return Buffer.concat(entries);
}
