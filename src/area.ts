import type { GrpcService } from './grpc/call/service.ts';
import type { RouteMount } from './http/mount.ts';
import type { Worker } from './workers/worker.ts';

/** One leg of the service: what it serves over HTTP, over gRPC, and what it does in the background. */
export interface Area {
  readonly routes?: readonly RouteMount[];
  readonly services?: readonly GrpcService[];
  readonly workers?: readonly Worker[];
}
