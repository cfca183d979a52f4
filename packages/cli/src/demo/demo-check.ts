/** What must be true after the demo, from the store and the ledger alone. Pure. */
import { answeredCalls, type Checkpoint } from '@lousho/contract';
import type { LedgerRow } from './demo-agent.ts';

export interface Verdict {
  readonly ok: boolean;
  readonly text: string;
}

/** @param killed pid of the process that was killed in `ship_order` */
export function checkDemo(
  run: Checkpoint | undefined,
  ledger: readonly LedgerRow[],
  killed: number,
): readonly Verdict[] {
  const began = (tool: string) => ledger.filter((row) => row.type === 'began' && row.tool === tool);
  const done = (tool: string) => ledger.filter((row) => row.type === 'done' && row.tool === tool);
  const answered = ledger.flatMap((row) => (row.type === 'answered' ? [row.step] : []));
  const shipped = began('ship_order');
  const keys = new Set(shipped.map((row) => (row.type === 'answered' ? '' : row.key)));
  const calls = [...answeredCalls(run?.messages ?? [])];
  const refund = calls.find(({ call }) => call.toolName === 'refund')?.result;
  return [
    { ok: run?.status === 'finished', text: 'the run is finished' },
    {
      ok: began('charge_card').length === 1 && done('charge_card').length === 1,
      text: 'the card was charged once: a recorded result is never made again',
    },
    {
      ok:
        shipped.some((row) => row.process === killed) &&
        shipped.length === 2 &&
        keys.size === 1 &&
        done('ship_order').length === 1,
      text: 'shipping was cut off by the kill, began again under the same idempotency key, and happened once',
    },
    {
      ok: began('refund').length === 1 && refund?.approval?.approved === true,
      text: 'the refund ran once, after a person had approved it',
    },
    {
      ok: new Set(answered).size === answered.length && answered.length === run?.stepIndex,
      text: `the model was asked ${answered.length} times for ${run?.stepIndex ?? 0} responses: none was paid twice`,
    },
    {
      ok: calls.length === 3 && calls.every(({ result }) => result !== undefined),
      text: 'each of the 3 calls has exactly one result',
    },
  ];
}
