/** Errors are recognised wherever they were made: in another package, or in a second installed copy of one. */
import * as contract from '@lousho/contract';
import { AgentExecutor } from '@lousho/executor';
import { memoryStore } from '@lousho/store-memory';
import { mockModel } from '@lousho/testing';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import * as core from '../src/index.ts';
import { rejection } from './support/read.ts';
import { emailTool, spyTool } from './support/tools.ts';

describe('errors of two installed copies', () => {
  let copy: typeof core;
  beforeAll(async () => {
    vi.resetModules();
    copy = await import('../src/index.ts');
  });

  const classes = [
    'SDKError',
    'ConfigurationError',
    'SessionAwaitingApprovalError',
    'PropagatingToolError',
    'LLMProviderError',
  ] as const;

  it('are of two classes, so the test means something', () => {
    for (const name of classes) expect(copy[name]).not.toBe(core[name]);
  });

  it('are instances of either copy', () => {
    const made = new copy.PropagatingToolError('no');
    expect(made).toBeInstanceOf(core.PropagatingToolError);
    expect(made).toBeInstanceOf(core.SDKError);
    expect(made).not.toBeInstanceOf(core.ConfigurationError);
    expect(core.isSDKError(made, 'LOUSHO_TOOL_PROPAGATED')).toBe(true);
  });

  it('reject a run when a tool of the other copy throws one', async () => {
    const error = new copy.PropagatingToolError('not like this');
    const work = spyTool('work', () => {
      throw error;
    });
    const agent = core.createAgent({
      provider: mockModel([{ toolCalls: [{ name: 'work' }] }]),
      tools: [work.tool],
    });
    expect(await rejection(agent.send('go'))).toBe(error);
  });

  it('pass from a provider of the other copy with what they say about trying again', async () => {
    const error = new copy.LLMProviderError('full', { kind: 'api', status: 400, retryable: false });
    const model = mockModel([error]);
    expect(await rejection(core.createAgent({ provider: model }).send('go'))).toBe(error);
    expect(model.calls).toHaveLength(1);
  });

  it('take tools, stores and models of the other copy', async () => {
    const tool = copy.defineTool({
      name: 'work',
      description: 'Works.',
      input: { type: 'object' },
      execute: () => 'ok',
    });
    const agent = core.createAgent({
      provider: mockModel([{ toolCalls: [{ name: 'work' }] }, 'Done.']),
      tools: [tool],
      store: memoryStore(),
    });
    expect((await agent.send('go', { sessionId: 'job-1' })).text).toBe('Done.');
  });
});

describe('errors across packages', () => {
  it('are the classes that core re-exports, whoever throws them', async () => {
    for (const name of ['SDKError', 'ConfigurationError', 'SessionAwaitingApprovalError'] as const)
      expect(core[name]).toBe(contract[name]);
    const { checkpoints, approvals } = memoryStore();
    const email = emailTool();
    const options = {
      agent: {},
      provider: mockModel([{ toolCalls: [{ name: 'email', args: { to: 'a' } }] }]),
      toolRegistry: new core.ToolRegistry([email.tool]),
      approvalStore: approvals,
      checkpointStore: checkpoints,
      sessionId: 'chat-42',
    };
    await AgentExecutor.execute({ ...options, input: 'go' });
    const error = await rejection(AgentExecutor.execute({ ...options, input: 'Are you done?' }));
    expect(error).toBeInstanceOf(core.SessionAwaitingApprovalError);
    expect(error).toBeInstanceOf(Error);
  });

  it('say what happened, to which id, and whether to try again', async () => {
    const error = await rejection(
      core.createAgent({ provider: mockModel([]) }).send('go', { sessionId: 'job-1' }),
    );
    expect(error).toMatchObject({
      name: 'ConfigurationError',
      code: 'LOUSHO_CONFIG_MISSING_CHECKPOINT_STORE',
      message: expect.stringContaining('job-1'),
      hint: expect.any(String),
      retryable: false,
    });
  });

  it('are stored without a stack, however long they are', async () => {
    const store = memoryStore();
    const work = spyTool('work');
    const provider = mockModel([{ toolCalls: [{ name: 'work' }] }, new Error('x'.repeat(10_000))]);
    const agent = core.createAgent({ provider, tools: [work.tool], store, retry: { maxRetries: 0 } });
    await rejection(agent.send('go', { sessionId: 'job-1' }));
    const stored = (await store.checkpoints.load('job-1')) as { lastError?: core.StoredError } | null;
    expect(stored?.lastError?.message.length).toBeLessThanOrEqual(2_048);
    expect(stored?.lastError).not.toHaveProperty('stack');
  });
});
