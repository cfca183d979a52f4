import type { AgentHooks, ToolHookContext, ToolCallRecord } from '@lousho/contract';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  calling,
  givenStorage,
  givenWorld,
  need,
  noting,
  resultFor,
  results,
  until,
  type Setup,
} from './support.ts';

const down = new Error('audit is down');
const fails = (): never => {
  throw down;
};

function givenCharge(hooks: AgentHooks | readonly AgentHooks[], more: Partial<Setup> = {}) {
  const storage = givenStorage();
  const seen: unknown[] = [];
  const charge = noting(
    storage,
    'charge',
    (args) => {
      seen.push(args);
      return { charged: true };
    },
    { input: z.object({ amount: z.number().optional() }) },
  );
  const world = givenWorld({
    storage,
    tools: [charge],
    script: [calling(['charge', { amount: 10 }]), 'done'],
    hooks,
    ...more,
  });
  return { world, seen };
}

describe('hooks', () => {
  it('run around model and tool, one after the other, and see the run', async () => {
    const order: string[] = [];
    const watch = (name: string): AgentHooks => ({
      beforeModel: ({ step }) => void order.push(`${name} beforeModel ${step}`),
      afterModel: ({ step }) => void order.push(`${name} afterModel ${step}`),
      beforeTool: ({ toolName, args }) =>
        void order.push(`${name} beforeTool ${toolName} ${JSON.stringify(args)}`),
      afterTool: ({ toolCallId }, { result }) =>
        void order.push(`${name} afterTool ${toolCallId} ${JSON.stringify(result)}`),
      onFinish: (_ctx, { finishReason }) => void order.push(`${name} onFinish ${finishReason}`),
    });
    const { world } = givenCharge([watch('1'), watch('2')]);
    await world.send('go');
    expect(order).toEqual([
      '1 beforeModel 0',
      '2 beforeModel 0',
      '1 afterModel 1',
      '2 afterModel 1',
      '1 beforeTool charge {"amount":10}',
      '2 beforeTool charge {"amount":10}',
      '1 afterTool call_charge {"charged":true}',
      '2 afterTool call_charge {"charged":true}',
      '1 beforeModel 1',
      '2 beforeModel 1',
      '1 afterModel 2',
      '2 afterModel 2',
      '1 onFinish stop',
      '2 onFinish stop',
    ]);
  });

  it('see for whom the run is, and its messages', async () => {
    let ctx: ToolHookContext | undefined;
    const { world } = givenCharge({ beforeTool: (seen) => void (ctx = seen) });
    await world.send('go', { metadata: { tenant: 't' }, principal: { id: 'ann' } });
    expect(ctx).toMatchObject({
      sessionId: 'order-7',
      agentName: 'agent',
      step: 1,
      metadata: { tenant: 't' },
      principal: { id: 'ann' },
      toolCallId: 'call_charge',
    });
    expect(ctx?.messages).toHaveLength(2);
    expect(ctx).not.toHaveProperty('resumedAfterApproval');
  });

  it('run again when a call runs again after a crash', async () => {
    const counts: string[] = [];
    const { world } = givenCharge(
      { beforeTool: ({ toolName }) => void counts.push(toolName) },
      { diesAt: { call: 'saveIfLeased#2', when: 'before' } },
    );
    await world.untilDead(world.send('go'));
    await (await world.afterCrash({ script: ['done'] })).resume();
    expect(counts).toEqual(['charge', 'charge']);
  });
});

describe('a hook before a tool', () => {
  it('may change the arguments: what runs is checked again', async () => {
    const { world, seen } = givenCharge({ beforeTool: () => ({ args: { amount: 5 } }) });
    await world.send('go');
    expect(seen).toEqual([{ amount: 5 }]);
  });
  it('that gives wrong arguments keeps the tool from running', async () => {
    const { world, seen } = givenCharge({ beforeTool: () => ({ args: { amount: 'five' } }) });
    const { messages } = await world.send('go');
    expect(seen).toEqual([]);
    expect(resultFor(messages, 'charge')).toMatchObject({
      kind: 'validation',
      result: { issues: [{ path: 'amount' }] },
    });
  });
  it('may deny the call', async () => {
    const { world, seen } = givenCharge({ beforeTool: () => ({ deny: 'not today' }) });
    const { messages } = await world.send('go');
    expect(seen).toEqual([]);
    expect(resultFor(messages, 'charge')).toMatchObject({
      kind: 'denied',
      isError: true,
      result: { error: 'not today' },
    });
  });
  it('may give the result itself, and the event says so', async () => {
    const { world, seen } = givenCharge({ beforeTool: () => ({ result: { cached: true } }) });
    const { messages } = await world.send('go');
    expect(seen).toEqual([]);
    expect(resultFor(messages, 'charge').result).toEqual({ cached: true });
    expect(world.events.find(({ type }) => type === 'tool.done')).toMatchObject({ replacedByHook: true });
  });
  it('is not asked about arguments that do not fit', async () => {
    const asked: unknown[] = [];
    const { world } = givenCharge(
      { beforeTool: (ctx) => void asked.push(ctx) },
      { script: [calling(['charge', { amount: 'x' }]), 'done'] },
    );
    await world.send('go');
    expect(asked).toEqual([]);
  });
  it('that throws rejects the run; nothing ran, and a resume runs the call', async () => {
    const { world } = givenCharge({ beforeTool: fails });
    await expect(world.send('go')).rejects.toBe(down);
    expect(world.timesRun('charge')).toBe(0);
    expect(await world.unfinished()).toMatchObject({ attempts: 1, lastError: { message: 'audit is down' } });
    await world.onNewProcess({ hooks: [], script: ['done'] }).resume();
    expect(world.timesRun('charge')).toBe(1);
  });
  it('that throws for one call keeps none of the others from being known: nothing of the batch began', async () => {
    const storage = givenStorage();
    const world = givenWorld({
      storage,
      tools: [noting(storage, 'a'), noting(storage, 'b')],
      script: [calling('a', 'b'), 'done'],
      hooks: { beforeTool: ({ toolName }) => (toolName === 'b' ? fails() : undefined) },
    });
    await expect(world.send('go')).rejects.toBe(down);
    expect(storage.effects).toEqual([]);
  });
});

describe('a hook after a tool', () => {
  it('may replace the result: one save, and the model sees the other one', async () => {
    const { world } = givenCharge({ afterTool: () => ({ result: 'redacted' }) });
    await world.send('go');
    expect(resultFor(world.model.calls[1]?.messages, 'charge').result).toBe('redacted');
    expect(world.storage.store.saves).toHaveLength(3);
    expect(world.events.find(({ type }) => type === 'tool.done')).toMatchObject({
      result: 'redacted',
      replacedByHook: true,
    });
  });
  it('sees what the hook before it made of the result', async () => {
    const seen: ToolCallRecord['result'][] = [];
    const { world } = givenCharge([
      { afterTool: () => ({ result: 'first' }) },
      { afterTool: (_ctx, { result }) => void seen.push(result) },
    ]);
    await world.send('go');
    expect(seen).toEqual(['first']);
  });
  it('sees a failure of the tool and may turn it into a result', async () => {
    const storage = givenStorage();
    const world = givenWorld({
      storage,
      tools: [noting(storage, 'a', fails)],
      script: [calling('a'), 'done'],
      hooks: {
        afterTool: (_ctx, record) => (record.kind === 'execution' ? { result: 'never mind' } : undefined),
      },
    });
    const { messages } = await world.send('go');
    expect(resultFor(messages, 'a')).not.toHaveProperty('kind');
    expect(resultFor(messages, 'a').result).toBe('never mind');
  });
  it("that throws rejects the run, but the tool's own result is recorded: it never runs again", async () => {
    const { world } = givenCharge({ afterTool: fails });
    await expect(world.send('go')).rejects.toBe(down);
    expect(resultFor((await world.unfinished()).messages, 'charge').result).toEqual({ charged: true });
    expect(await world.unfinished()).toMatchObject({ attempts: 1 });
    await world.onNewProcess({ hooks: [], script: ['done'] }).resume();
    expect(world.timesRun('charge')).toBe(1);
  });
  it('that throws lets the siblings end and keep their results', async () => {
    const storage = givenStorage();
    const world = givenWorld({
      storage,
      tools: [
        noting(storage, 'a'),
        noting(storage, 'b', () => new Promise((resolve) => setImmediate(resolve, 'late'))),
      ],
      script: [calling('a', 'b')],
      hooks: { afterTool: ({ toolName }) => (toolName === 'a' ? fails() : undefined) },
    });
    await expect(world.send('go')).rejects.toBe(down);
    expect(results((await world.unfinished()).messages).map(({ toolName }) => toolName)).toEqual(['a', 'b']);
  });
  it('that gives what JSON cannot say makes an error result, not a lost run', async () => {
    const { world } = givenCharge({ afterTool: () => ({ result: { n: 1n } as never }) });
    const { messages, finishReason } = await world.send('go');
    expect(resultFor(messages, 'charge').kind).toBe('execution');
    expect(finishReason).toBe('stop');
  });
});

describe('a hook around the model', () => {
  it('that throws before the first call leaves the store as it was', async () => {
    const { world } = givenCharge({ beforeModel: fails });
    await expect(world.send('go')).rejects.toBe(down);
    expect(await world.stored()).toBeUndefined();
    expect(world.model.calls).toEqual([]);
  });
  it('that throws before a later call keeps what is recorded', async () => {
    const { world } = givenCharge({ beforeModel: ({ step }) => (step === 1 ? fails() : undefined) });
    await expect(world.send('go')).rejects.toBe(down);
    expect(await world.unfinished()).toMatchObject({ attempts: 1, stepIndex: 1 });
  });
  it('that throws after a call keeps the response: it is not asked for again', async () => {
    const { world } = givenCharge({ afterModel: ({ step }) => (step === 2 ? fails() : undefined) });
    await expect(world.send('go')).rejects.toBe(down);
    const resumed = world.onNewProcess({ hooks: [], script: [] });
    expect(await resumed.resume()).toMatchObject({
      text: 'done',
      finishReason: 'stop',
      usage: { modelCalls: 2 },
    });
  });
  it('is told of each model call once, also when the provider needed more tries', async () => {
    const steps: number[] = [];
    const { world } = givenCharge(
      { beforeModel: ({ step }) => void steps.push(step) },
      { script: [new Error('busy'), 'done'] },
    );
    await world.letTimePass(world.send('go'));
    expect(steps).toEqual([0]);
  });
});

describe('a hook at the end', () => {
  it('that throws rejects the run; what is finished stays finished', async () => {
    const { world } = givenCharge({ onFinish: fails });
    await expect(world.send('go')).rejects.toBe(down);
    expect(await world.stored()).toMatchObject({ status: 'finished' });
    expect(world.eventTypes().slice(-2)).toEqual(['error', 'run.done']);
  });
  it('hears of a pause and of an abort too', async () => {
    const reasons: string[] = [];
    const storage = givenStorage();
    const world = givenWorld({
      storage,
      tools: [noting(storage, 'pay', undefined, { needsApproval: true })],
      script: [calling('pay'), { text: 'late', delayMs: 60_000 }],
      hooks: { onFinish: (_ctx, { finishReason }) => void reasons.push(finishReason) },
    });
    const paused = await world.send('go');
    const run = world.streamDecide({ id: need(paused.approvalId), approved: true });
    await until(() => world.model.calls.length === 2);
    run.abort();
    await run.result;
    expect(reasons).toEqual(['awaiting-approval', 'aborted']);
  });
});
