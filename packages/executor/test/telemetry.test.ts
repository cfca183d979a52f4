import { LLMProviderError, type ModelCallInfo, type SegmentInfo, type Telemetry } from '@lousho/contract';
import { mockModel } from '@lousho/testing';
import { describe, expect, it } from 'vitest';
import { calling, givenStorage, givenWorld, need, noting, until, type Setup } from './support.ts';

function givenTraced(script: NonNullable<Setup['script']>, more: Partial<Telemetry> = {}) {
  const storage = givenStorage();
  const log: string[] = [];
  const infos: SegmentInfo[] = [];
  const telemetry: Telemetry = {
    async segment(info, work) {
      infos.push(info);
      log.push('segment');
      const result = await work();
      log.push(`segment ${result.finishReason}`);
      return result;
    },
    async modelCall({ step }, work) {
      log.push(`model ${step}`);
      return work();
    },
    async toolCall({ call, rerun }, work) {
      log.push(`tool ${call.toolName}${rerun ? ' again' : ''}`);
      return work();
    },
    onCheckpoint: ({ status, fenced }) => void log.push(`saved ${status}${fenced ? ' fenced' : ''}`),
    onApproval: ({ approval }) => void log.push(`asked ${approval.toolName}`),
    ...more,
  };
  const tools = [noting(storage, 'a'), noting(storage, 'pay', undefined, { needsApproval: true })];
  return { world: givenWorld({ storage, tools, script, telemetry }), log, infos };
}

describe('tracing', () => {
  it('has one segment around the run, and one span a call, each called once', async () => {
    const { world, log, infos } = givenTraced([calling('a'), 'done']);
    await world.send('go');
    expect(log).toEqual([
      'segment',
      'model 0',
      'saved in-progress fenced',
      'tool a',
      'saved in-progress fenced',
      'model 1',
      'saved finished fenced',
      'segment stop',
    ]);
    expect(infos).toMatchObject([
      {
        sessionId: 'order-7',
        agentName: 'agent',
        providerId: 'mock',
        modelId: 'mock',
        resumed: false,
        step: 0,
        attempts: 0,
      },
    ]);
    expect(world.model.calls).toHaveLength(2);
    expect(world.timesRun('a')).toBe(1);
  });

  it('ends its segment at a pause, and links the next one to it, whatever is traced around the decision', async () => {
    const traces = new Map<string, string>();
    const { world, log, infos } = givenTraced([calling('pay'), 'Paid.', 'Again.'], {
      async segment(info, work) {
        infos.push(info);
        traces.set(info.segmentId, `trace ${traces.size}`);
        return work();
      },
      traceparent: ({ segmentId }) => traces.get(segmentId),
    });
    const paused = await world.send('go');
    expect(log.at(-1)).toBe('asked pay');
    await world.decide({ id: need(paused.approvalId), approved: true });
    expect(infos[1]).toMatchObject({ resumed: true, step: 1, linkTo: 'trace 0' });
    expect(infos[0]).not.toHaveProperty('linkTo');
    expect((await world.stored())?.traceparent).toBe('trace 1');
  });

  it('tells everything of a segment under one id, and links none of it to the segment itself', async () => {
    const told: SegmentInfo[] = [];
    const { world, infos } = givenTraced([calling('a'), 'done'], {
      modelCall: async (info, work) => (told.push(info), work()),
      toolCall: async (info, work) => (told.push(info), work()),
      onCheckpoint: (info) => void told.push(info),
      traceparent: () => 'this one',
    });
    await world.send('go');
    expect(told).toHaveLength(6);
    expect(new Set(told.map(({ segmentId }) => segmentId))).toEqual(new Set([infos[0]?.segmentId]));
    expect(told.filter((info) => 'linkTo' in info)).toEqual([]);
  });

  it('sees the failure of a run in its segment', async () => {
    let seen: unknown;
    const { world } = givenTraced([new Error('down')], {
      async segment(_info, work) {
        try {
          return await work();
        } catch (error) {
          seen = error;
          throw error;
        }
      },
    });
    await expect(world.send('go', { retry: { maxRetries: 0 } })).rejects.toThrow('down');
    expect(seen).toMatchObject({ code: 'LOUSHO_PROVIDER_ERROR' });
  });

  it('knows a call that runs again', async () => {
    const { world, log } = givenTraced([calling('a')]);
    const dying = world.onNewProcess({ diesAt: { call: 'saveIfLeased#2', when: 'before' } });
    await dying.untilDead(dying.send('go'));
    await (await dying.afterCrash({ script: ['done'] })).resume();
    expect(log).toContain('tool a again');
  });

  it('says which call runs a sub-agent', async () => {
    const infos: SegmentInfo[] = [];
    const world = givenWorld({
      script: [calling(['task', { agent: 'clerk', prompt: 'Count.' }]), 'done'],
      agent: { subagents: [{ name: 'clerk', description: 'Counts.', provider: mockModel(['3']) }] },
      telemetry: { segment: (info, work) => (infos.push(info), work()) },
    });
    await world.send('go');
    expect(infos[1]).toMatchObject({
      agentName: 'clerk',
      subagentPath: ['clerk'],
      calledBy: { segmentId: infos[0]?.segmentId, toolCallId: 'call_task' },
    });
  });
});

describe('what is traced of a call', () => {
  it('is a request each: retries count up, and the first word of a stream is told once', async () => {
    const requests: ModelCallInfo[] = [];
    const first: ModelCallInfo[] = [];
    const telemetry: Telemetry = {
      modelCall: (info, work) => (requests.push(info), work()),
      onFirstChunk: (info) => void first.push(info),
    };
    const busy = new LLMProviderError('busy', { kind: 'api', status: 429, retryable: true });
    const world = givenWorld({ script: [busy, 'It is done.'], telemetry });
    await world.letTimePass(world.stream('go').result);
    expect(requests.map(({ retries, isStreamed }) => [retries, isStreamed])).toEqual([
      [0, true],
      [1, true],
    ]);
    expect(first).toEqual([requests[1]]);
    expect(first[0]).toBe(requests[1]);
  });

  it('ends when the run is stopped, also when the model and the tool do not listen', async () => {
    const ends: string[] = [];
    const telemetry: Telemetry = {
      async modelCall({ request }, work) {
        try {
          return await work();
        } catch (error) {
          ends.push(`model ${error === request.signal.reason ? 'stopped' : 'failed'}`);
          throw error;
        }
      },
      async toolCall(_info, work) {
        const end = await work();
        ends.push(`tool ${end.type === 'result' ? end.result.kind : end.type}`);
        return end;
      },
    };
    const model = givenWorld({ script: [{ text: 'late', delayMs: 9e9, ignoreSignal: true }], telemetry });
    const asked = new AbortController();
    const asking = model.send('go', { signal: asked.signal });
    await until(() => model.model.calls.length === 1);
    asked.abort(new Error('enough'));
    await asking;
    expect(ends).toEqual(['model stopped']);

    const storage = givenStorage();
    const never = noting(storage, 'never', () => new Promise(() => undefined));
    const world = givenWorld({ storage, tools: [never], script: [calling('never')], telemetry });
    const aborted = new AbortController();
    const calls = world.send('go', { signal: aborted.signal });
    await until(() => world.timesRun('never') === 1);
    aborted.abort();
    await world.letTimePass(calls);
    expect(ends).toEqual(['model stopped', 'tool cancelled']);
  });

  it('is what the tool ran with and what the run recorded, a time-out included', async () => {
    const ends: unknown[] = [];
    const telemetry: Telemetry = {
      async toolCall({ args, description, approvalId }, work) {
        const end = await work();
        ends.push({ args, description, approvalId, end });
        return end;
      },
    };
    const storage = givenStorage();
    const slow = noting(storage, 'slow', () => new Promise(() => undefined), { timeoutMs: 1_000 });
    const pay = noting(storage, 'pay', () => new Date(0), { needsApproval: true });
    const world = givenWorld({
      ...{ storage, tools: [slow, pay], telemetry },
      script: [calling('slow'), calling(['pay', { cents: 5 }]), 'done'],
    });
    const paused = await world.letTimePass(world.send('go'));
    await world.decide({ id: need(paused.approvalId), approved: true, args: { cents: 4 } });
    expect(ends).toMatchObject([
      { args: {}, approvalId: undefined, end: { type: 'result', result: { kind: 'execution' } } },
      {
        args: { cents: 4 },
        description: 'Does pay.',
        approvalId: paused.approvalId,
        end: { type: 'result', result: { result: '1970-01-01T00:00:00.000Z' } },
      },
    ]);
  });
});

describe('a tracer that fails', () => {
  const broken = (): never => {
    throw new Error('the tracer is broken');
  };
  const halfway: Telemetry = {
    async segment(_info, work) {
      await work();
      return broken();
    },
    async modelCall(_info, work) {
      await work();
      return broken();
    },
    async toolCall(_info, work) {
      await Promise.all([work(), work()]);
      return broken();
    },
  };
  const told = { onFirstChunk: broken, onCheckpoint: broken, onApproval: broken, traceparent: broken };
  const nothing = async (): Promise<never> => undefined as never;

  it.each<[string, Telemetry]>([
    ['before the work', { segment: broken, modelCall: broken, toolCall: broken, ...told }],
    ['after the work', halfway],
    ['by doing nothing', { segment: nothing, modelCall: nothing, toolCall: nothing }],
  ])('%s changes nothing in the run', async (_when, telemetry) => {
    const storage = givenStorage();
    const tools = [noting(storage, 'a'), noting(storage, 'pay', undefined, { needsApproval: true })];
    const world = givenWorld({ storage, tools, script: [calling('a'), calling('pay'), 'Paid.'], telemetry });
    const paused = await world.stream('go').result;
    const result = await world.decide({ id: need(paused.approvalId), approved: true });
    expect(result).toMatchObject({ finishReason: 'stop', text: 'Paid.', steps: 3 });
    expect(storage.effects).toEqual(['a', 'pay']);
    expect(world.model.calls).toHaveLength(3);
    expect(await world.stored()).toMatchObject({ status: 'finished' });
  });

  it('does not hide why the run failed', async () => {
    const { world } = givenTraced([new Error('down')], { segment: broken, modelCall: broken });
    await expect(world.send('go', { retry: { maxRetries: 0 } })).rejects.toThrow('down');
  });
});
