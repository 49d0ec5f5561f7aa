/** Serves reports over HTTP: JSON lines, or a batch as JSON or bytes. */
import type { OpenAPIHono } from '@hono/zod-openapi';
import type { CallerRule } from '../../grpc/call/require-caller.ts';
import type { HttpEnv } from '../../http/context.ts';
import { createRoutes } from '../../http/routes.ts';
import { readJsonBatch } from '../observations/event-json.ts';
import type { ObservationService } from './observation-service.ts';
import { readContentType, refuseContentType, requireHttpCaller } from './predict-routes.ts';
import { readBytes, readJson, splitLines } from './rpc-body.ts';
import { describeReportBatch } from './rpc-openapi.ts';

/** Must be mounted at `/observation.v1.ObservationService`, with errors in the style `rpc`. */
export function createObservationRoutes(service: ObservationService, rule: CallerRule): OpenAPIHono<HttpEnv> {
  const routes = createRoutes();
  describeReportBatch(routes);
  routes.use(requireHttpCaller(rule, 'observe'));
  routes.post('/ReportBatch', async (c) => {
    const kind = readContentType(c.req.header('content-type'));
    switch (kind) {
      case 'application/json':
        return c.json(await service.reportJson(readJsonBatch(await readJson(c))));
      case 'application/jsonl':
      case 'application/x-ndjson':
        return c.json(await service.reportJsonLines(splitLines(await readBytes(c))));
      case 'application/proto': {
        const answer = await service.reportBytes(await readBytes(c));
        return c.body(new Uint8Array(answer), 200, { 'Content-Type': 'application/proto' });
      }
      default:
        throw refuseContentType(kind, 'application/json, application/jsonl or application/proto');
    }
  });
  return routes;
}
