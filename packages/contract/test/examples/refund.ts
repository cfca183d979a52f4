import { defineTool, once } from '@lousho/contract';
import { z } from 'zod';

export const refund = defineTool({
  name: 'refund',
  description: 'Pays an order back.',
  input: z.object({ orderId: z.string(), cents: z.number().int().positive() }),
  needsApproval: once({ per: 'args' }),
  // The same key when this call is run again after a crash: the payment service refunds once.
  execute: ({ orderId, cents }, ctx) => ({ orderId, cents, key: ctx.idempotencyKey }),
});
