/** Declares what an area offers the program: routes, gRPC services, workers and ports of its own. */
import type { GrpcService } from './grpc/call/service.ts';
import type { Endpoint } from './http/endpoint.ts';
import type { ReplyStyle, RouteMount } from './http/mount.ts';
import type { ApiDescriptions } from './http/openapi/api-descriptions.ts';
import type { Worker } from './workers/worker.ts';

/** One area of the service: what it serves over HTTP, over gRPC, and what it does in the background. */
export interface Area {
  readonly routes?: readonly RouteMount[];
  /** The OpenAPI document says this of the routes beside what they say of themselves. */
  readonly apiDescriptions?: ApiDescriptions;
  readonly services?: readonly GrpcService[];
  readonly workers?: readonly Worker[];
  /** Served over HTTP beside the common port, for clients that know no path but the root. */
  readonly ownPorts?: readonly OwnPort[];
}

export interface OwnPort {
  /** The name that the banner shows. */
  readonly name: string;
  /** The setting of the port. */
  readonly variable: string;
  /** 0 takes any free one. */
  readonly port: number;
  /** How refusals are worded. */
  readonly errors: ReplyStyle;
  readonly endpoints: readonly Endpoint[];
}
