/** What the agent works on. Its ledger is a file, so that you can see that no refund is made twice. */
import { appendFileSync } from 'node:fs';
import path from 'node:path';

const orders = [
  { order: 7, item: 'A blue teapot', cents: 4900, state: 'delivered two days ago' },
  { order: 8, item: 'Six cups', cents: 3600, state: 'on its way, here tomorrow' },
];

export class Shop {
  readonly #ledger: string;

  constructor(folder: string) {
    this.#ledger = path.join(folder, 'refunds.jsonl');
  }

  find(order: number) {
    const found = orders.find((one) => one.order === order);
    if (found === undefined) throw new Error(`There is no order ${order}. There are 7 and 8.`);
    return found;
  }

  /** A line each time that it is asked. A payment service would also be given the key, and pay once for it. */
  refund(order: number, cents: number, idempotencyKey: string) {
    appendFileSync(this.#ledger, `${JSON.stringify({ order, cents, idempotencyKey })}\n`);
    return { order, refundedCents: cents };
  }
}
