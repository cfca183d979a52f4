import type { SegmentInfo, Telemetry } from '@lousho/contract';
import { describe, expect, it } from 'vitest';
import { calling, givenStorage, givenWorld, need, noting, type Setup } from './support.ts';

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

  it('ends its segment at a pause, and links the next one to it', async () => {
    const { world, log, infos } = givenTraced([calling('pay'), 'Paid.'], {
      traceparent: () => '00-abc-def-01',
    });
    const paused = await world.send('go');
    expect(log.slice(-2)).toEqual(['asked pay', 'segment awaiting-approval']);
    await world.decide({ id: need(paused.approvalId), approved: true });
    expect(infos[1]).toMatchObject({ resumed: true, step: 1, linkTo: '00-abc-def-01' });
    expect(infos[0]).not.toHaveProperty('linkTo');
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
});
