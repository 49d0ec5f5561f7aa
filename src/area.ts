/** Declares what an area offers the program: routes, gRPC services, workers and separate ports. */
import type { GrpcService } from './grpc/call/service.ts';
import type { Endpoint } from './http/endpoint.ts';
import type { ReplyStyle, RouteMount } from './http/mount.ts';
import type { ApiDescriptions } from './http/openapi/api-descriptions.ts';
import type { Worker } from './workers/worker.ts';

/** One area of the service: what it serves over HTTP, over gRPC, and what it does in the background. */
export interface Area {
  readonly routes?: readonly RouteMount[];
  /** Descriptions for the OpenAPI document beside those that the routes declare. */
  readonly apiDescriptions?: ApiDescriptions;
  readonly services?: readonly GrpcService[];
  readonly workers?: readonly Worker[];
  /** Served on a separate HTTP port, for clients that use fixed paths at the root. */
  readonly ownPorts?: readonly OwnPort[];
}

export interface OwnPort {
  /** The name that the banner shows. */
  readonly name: string;
  /** The setting of the port. */
  readonly variable: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** The error style of refusals. */
  readonly errors: ReplyStyle;
  readonly endpoints: readonly Endpoint[];
}
