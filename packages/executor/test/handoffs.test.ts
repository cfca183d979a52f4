/** Handoffs of the engine's own form: the definition lists the targets, and a decision goes on with whoever answers. */
import type { HandoffTarget, JsonValue } from '@lousho/contract';
import { mockModel } from '@lousho/testing';
import { expect, it } from 'vitest';
import { calling, givenStorage, givenWorld, need, noting, refusal, resultFor, roles } from './support.ts';

/** `clerk` hands over to `billing`, which asks for the gated `pay`. */
function givenShop(more: Partial<HandoffTarget> = {}, isDurable = true) {
  const storage = givenStorage();
  const pay = noting(storage, 'pay', undefined, { needsApproval: true });
  const billing = mockModel([calling('pay'), 'Paid.'], { answerBy: 'call', modelId: 'billing-model' });
  const handoffs: readonly HandoffTarget[] = [
    {
      name: 'billing',
      description: 'Counts.',
      instructions: 'Count.',
      provider: billing,
      tools: [pay],
      ...more,
    },
  ];
  const world = givenWorld({
    ...{ storage, isDurable },
    tools: [noting(storage, 'look')],
    script: [calling('handoff_to_billing')],
    agent: { name: 'clerk', instructions: 'Serve.', handoffs },
  });
  return { world, storage, billing, pay };
}

it.each([true, false])(
  'the one who took over is asked for, and decided for, with the definition (stored: %s)',
  async (isDurable) => {
    const { world, storage, billing } = givenShop({}, isDurable);
    const paused = await world.send('pay');
    expect(paused).toMatchObject({ finishReason: 'awaiting-approval', agentName: 'billing' });
    const result = await world.onNewProcess().decide({ id: need(paused.approvalId), approved: true });
    expect(result).toMatchObject({ text: 'Paid.', agentName: 'billing', steps: 3 });
    expect(storage.effects).toEqual(['pay']);
    expect(roles(billing.calls.at(-1)?.messages)).toBe('system user assistant tool assistant tool');
    expect(billing.calls.at(-1)?.messages[0]).toMatchObject({ content: 'Count.' });
  },
);

it('a decision that names no agent goes on as whoever answers, with the saved instructions and the registry', async () => {
  const { world, storage, pay } = givenShop();
  const paused = await world.send('pay');
  const script = ['Paid by the saved agent.'];
  const other = givenWorld({ storage, tools: [pay], script, onAgentDrift: 'ignore' });
  const result = await other.decide({ id: need(paused.approvalId), approved: true });
  expect(result).toMatchObject({ agentName: 'billing', text: 'Paid by the saved agent.' });
  expect(other.model.calls[0]).toMatchObject({ model: 'billing-model' });
  expect(other.model.calls[0]?.messages[0]).toMatchObject({ content: 'Count.' });
});

it('a decision of an agent that does not list the target is refused, a no as well, and nothing changes', async () => {
  const { world, storage, pay } = givenShop();
  const paused = await world.send('pay');
  const other = givenWorld({ storage, tools: [pay], script: ['never'], agent: { name: 'clerk' } });
  const stored = JSON.stringify(await world.stored());
  for (const approved of [true, false]) {
    const error = await refusal(
      other.decide({ id: need(paused.approvalId), approved }),
      'LOUSHO_RESUME_TOOL_MISSING',
    );
    expect(error.details).toMatchObject({ activeAgent: 'billing', toolCallId: 'call_handoff_to_billing' });
  }
  expect(JSON.stringify(await world.stored())).toBe(stored);
  expect(await world.inbox()).toEqual([paused.approvalId]);
});

it('a handoff whose process dies behind its mark was never made, so it is made then: no call of it is interrupted', async () => {
  const { world } = givenShop({ needsApproval: true });
  const paused = await world.send('pay');
  const dying = world.onNewProcess({ diesAt: { call: 'saveIfLeased#2', when: 'before' } });
  await dying.untilDead(dying.decide({ id: need(paused.approvalId), approved: true }));
  const result = need(await (await dying.afterCrash()).resume());
  expect(resultFor(result.messages, 'handoff_to_billing')).toMatchObject({ approval: { approved: true } });
  expect(resultFor(result.messages, 'handoff_to_billing').kind).toBeUndefined();
  expect(result.agentName).toBe('billing');
});

it('arguments that a person changed are those that the transcript shows', async () => {
  const args = { reason: 'wants a receipt' } satisfies JsonValue;
  const { world } = givenShop({ needsApproval: true });
  const paused = await world.send('pay');
  const result = await world.decide({ id: need(paused.approvalId), approved: true, args });
  expect(result.toolCalls[0]).toMatchObject({ toolName: 'handoff_to_billing', args });
});

it('a target has sub-agents of its own', async () => {
  const { world, billing } = givenShop({
    provider: mockModel([
      { toolCalls: [{ name: 'task', args: { agent: 'auditor', prompt: 'Audit.' } }] },
      'Audited.',
    ]),
    subagents: [{ name: 'auditor', description: 'Audits.', provider: mockModel(['All is well.']) }],
  });
  const result = await world.send('audit');
  expect(result).toMatchObject({ text: 'Audited.', agentName: 'billing', usage: { delegated: { runs: 1 } } });
  expect(resultFor(result.messages, 'task').result).toEqual(expect.stringContaining('All is well.'));
  expect(billing.calls).toHaveLength(0);
});
