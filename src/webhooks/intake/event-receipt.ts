/** Declares the answer to the sender of an event: its id and its deliveries. */
import { z } from '@hono/zod-openapi';

export const eventReceiptFields = {
  id: z.int(),
  kind: z.string(),
  project_id: z.int(),
  created_at: z.string(),
  deliveries: z.array(z.object({ id: z.int(), hook_id: z.int(), uuid: z.string() })),
};

export type EventReceipt = z.infer<z.ZodObject<typeof eventReceiptFields>>;
