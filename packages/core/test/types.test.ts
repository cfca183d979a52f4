/** What the compiler tells a user before anything runs. `tsc` checks these lines; running them checks that they exist. */
import { arktypeLike } from './support/standard-schema.ts';
import { mockModel } from '@lousho/testing';
import { describe, expect, expectTypeOf, it } from 'vitest';
import { z } from 'zod';
import {
  createAgent,
  defineTool,
  isSDKError,
  once,
  type Agent,
  type AgentConfig,
  type AgentEvent,
  type AgentEventOf,
  type AgentRun,
  type ExecutionResult,
  type HandoffTarget,
  type JsonObject,
  type JsonValue,
  type PendingRun,
  type RunEnd,
  type SDKError,
  type SendOptions,
  type SubAgent,
  type Tool,
  type ToolContext,
} from '../src/index.ts';

const provider = mockModel([]);

describe('defineTool', () => {
  it('gives execute, the gate and the look-up the arguments of the schema', () => {
    const tool = defineTool({
      name: 'charge',
      description: 'Charges a card.',
      input: z.object({ amount: z.number(), note: z.string().optional() }),
      needsApproval({ amount }, ctx) {
        expectTypeOf(amount).toEqualTypeOf<number>();
        expectTypeOf(ctx).toEqualTypeOf<ToolContext>();
        return amount > 100;
      },
      onInterrupted(args) {
        expectTypeOf(args.note).toEqualTypeOf<string | undefined>();
        return { result: { id: 'ch_1' } };
      },
      execute(args, ctx) {
        expectTypeOf(args).toEqualTypeOf<{ amount: number; note?: string | undefined }>();
        expectTypeOf(ctx.approval).toEqualTypeOf<
          { readonly id: string; readonly by?: string; readonly note?: string } | undefined
        >();
        expectTypeOf(ctx.businessState).toEqualTypeOf<JsonValue | undefined>();
        // @ts-expect-error there is no such argument
        void args.currency;
        return { id: 'ch_1' };
      },
    });
    expectTypeOf(tool).toEqualTypeOf<Tool<{ amount: number; note?: string | undefined }, { id: string }>>();
    expect(tool.name).toBe('charge');
  });

  it('gives execute what the schema makes of the input, not what the model writes', () => {
    defineTool({
      name: 'book',
      description: 'Books.',
      input: z.object({ people: z.string().transform(Number), day: z.string().default('today') }),
      execute(args) {
        expectTypeOf(args).toEqualTypeOf<{ people: number; day: string }>();
      },
    });
  });

  it('reads any Standard Schema, and takes any object for a plain JSON Schema', () => {
    defineTool({
      name: 'a',
      description: 'A.',
      input: arktypeLike<{ to: string }>(),
      execute: (args) => expectTypeOf(args).toEqualTypeOf<{ to: string }>(),
    });
    defineTool({
      name: 'b',
      description: 'B.',
      input: { type: 'object', properties: { to: { type: 'string' } } },
      execute: (args) => expectTypeOf(args).toEqualTypeOf<JsonObject>(),
    });
  });

  it('takes a look-up only of the kind of result that the tool gives', () => {
    defineTool({
      name: 'charge',
      description: 'Charges.',
      input: z.object({}),
      execute: (): { id: string } => ({ id: 'ch_1' }),
      // @ts-expect-error the result of this tool has an id
      onInterrupted: () => ({ result: { number: 1 } }),
    });
  });
});

describe('createAgent', () => {
  it('takes tools of different arguments in one list, made there or before', () => {
    const look = defineTool({
      name: 'look',
      description: 'Looks.',
      input: z.object({ at: z.string() }),
      execute: ({ at }) => at,
    });
    const agent = createAgent({
      provider,
      tools: [
        look,
        defineTool({
          name: 'count',
          description: 'Counts.',
          input: z.object({ to: z.number() }),
          execute: ({ to }) => to,
        }),
        defineTool({
          name: 'mail',
          description: 'Mails.',
          input: { type: 'object' },
          needsApproval: once(),
          execute: () => 'sent',
        }),
      ],
    });
    expectTypeOf(agent).toEqualTypeOf<Agent>();
    expectTypeOf(look).toExtend<Tool>();
  });

  it('takes a sub-agent as the target of a handoff, and whether a person must agree to it', () => {
    expectTypeOf<readonly SubAgent[]>().toExtend<AgentConfig['handoffs']>();
    expectTypeOf<SubAgent & { needsApproval: ReturnType<typeof once> }>().toExtend<HandoffTarget>();
    expectTypeOf<SubAgent>().not.toHaveProperty('needsApproval');
  });

  it('asks for a provider alone, and takes undefined for all the rest', () => {
    expectTypeOf<{ provider: typeof provider }>().toExtend<AgentConfig>();
    expectTypeOf<{
      provider: typeof provider;
      name: undefined;
      store: undefined;
      lease: undefined;
    }>().toExtend<AgentConfig>();
    // @ts-expect-error the provider is missing
    const withoutProvider: AgentConfig = { name: 'clerk' };
    // @ts-expect-error a word that is no policy
    const badPolicy: AgentConfig = { provider, onAgentDrift: 'fail' };
    // @ts-expect-error a lease is an object, or false
    const badLease: AgentConfig = { provider, lease: true };
    // @ts-expect-error an option that is misspelt
    const misspelt: AgentConfig = { provider, maxStep: 3 };
    void [withoutProvider, badPolicy, badLease, misspelt];
  });

  it('takes model, instructions and tools as values or as functions of the run', () => {
    createAgent({
      provider,
      model: 'gpt-9',
      instructions: async ({ metadata, principal, input }) => {
        expectTypeOf(metadata).toEqualTypeOf<JsonObject>();
        expectTypeOf(principal?.id).toEqualTypeOf<string | undefined>();
        return `Answer ${input.length} messages.`;
      },
      tools: () => [],
    });
    // @ts-expect-error instructions are a text
    const badInstructions: AgentConfig = { provider, instructions: () => 7 };
    void badInstructions;
  });

  it('takes only JSON as metadata and state, and a principal with an id', () => {
    expectTypeOf<{
      metadata: { tenant: string };
      principal: { id: string; roles: string[] };
    }>().toExtend<SendOptions>();
    // @ts-expect-error a function is no JSON
    const badMetadata: SendOptions = { metadata: { later: () => 1 } };
    // @ts-expect-error a principal has an id
    const badPrincipal: SendOptions = { principal: { name: 'ann' } };
    // @ts-expect-error a date is no JSON
    const badState: SendOptions = { businessState: { at: new Date() } };
    void [badMetadata, badPrincipal, badState];
  });
});

describe('the result of a run', () => {
  it('is narrowed by its finish reason', () => {
    const read = (result: ExecutionResult): unknown => {
      expectTypeOf(result.approvalId).toEqualTypeOf<string | undefined>();
      switch (result.finishReason) {
        case 'awaiting-approval':
          expectTypeOf(result.approvalId).toEqualTypeOf<string>();
          expectTypeOf(result.approvalIds).toEqualTypeOf<readonly string[]>();
          return result.approvalIds;
        case 'aborted':
          expectTypeOf(result.abortReason.message).toEqualTypeOf<string>();
          expectTypeOf(result.approvalId).toEqualTypeOf<undefined>();
          return result.abortReason;
        case 'limit':
          expectTypeOf(result.limit?.used).toEqualTypeOf<number | undefined>();
          return result.limit;
        default:
          expectTypeOf(result.finishReason).toEqualTypeOf<Exclude<RunEnd, 'limit'>>();
          // @ts-expect-error a run that ended was not aborted
          return result.abortReason;
      }
    };
    expect(read).toBeTypeOf('function');
  });

  it('is frozen for the compiler, too', () => {
    const change = (result: ExecutionResult) => {
      // @ts-expect-error read only
      result.text = 'mine';
      // @ts-expect-error read only
      result.messages[0] = { role: 'user', content: 'mine' };
    };
    expect(change).toBeTypeOf('function');
  });

  it('of resume may be null and is never a stream; of stream is a handle', () => {
    expectTypeOf<Agent['resume']>().returns.resolves.toEqualTypeOf<ExecutionResult | null>();
    expectTypeOf<Agent['send']>().returns.resolves.toEqualTypeOf<ExecutionResult>();
    expectTypeOf<Agent['stream']>().returns.toEqualTypeOf<AgentRun>();
    expectTypeOf<AgentRun>().toExtend<AsyncIterable<AgentEvent>>();
    expectTypeOf<Agent['approvals']['resolve']>().returns.resolves.toEqualTypeOf<ExecutionResult>();
    expectTypeOf<Agent['approvals']['streamResolve']>().returns.toEqualTypeOf<AgentRun>();
  });
});

describe('events and pending runs', () => {
  it('have their payload by type', () => {
    const read = (event: AgentEvent): unknown => {
      switch (event.type) {
        case 'tool.done':
          expectTypeOf(event).toEqualTypeOf<AgentEventOf<'tool.done'>>();
          expectTypeOf(event.result).toEqualTypeOf<JsonValue>();
          return event.durationMs;
        case 'approval.requested':
          return expectTypeOf(event.approvalId).toEqualTypeOf<string>();
        case 'agent.drift':
          return expectTypeOf(event.toolsAdded).toEqualTypeOf<readonly string[]>();
        default:
          // @ts-expect-error not every event has a result
          return event.result;
      }
    };
    expect(read).toBeTypeOf('function');
  });

  it('tell by their status what else they have', () => {
    const read = (run: PendingRun): unknown => {
      if (run.status === 'awaiting-approval') {
        expectTypeOf(run.approvalId).toEqualTypeOf<string>();
        return run.approvalKind;
      }
      expectTypeOf(run.approvalId).toEqualTypeOf<undefined>();
      expectTypeOf(run.lastError?.retryable).toEqualTypeOf<boolean | undefined>();
      return run.attempts;
    };
    expect(read).toBeTypeOf('function');
  });
});

describe('errors', () => {
  it('have the details of their code', () => {
    const read = (error: unknown): unknown => {
      if (isSDKError(error, 'LOUSHO_AGENT_DRIFT'))
        return expectTypeOf(error.details.drift.toolsAdded).toEqualTypeOf<readonly string[]>();
      if (isSDKError(error, 'LOUSHO_SESSION_BUSY')) {
        expectTypeOf(error).toEqualTypeOf<SDKError<'LOUSHO_SESSION_BUSY'>>();
        // @ts-expect-error another code's detail
        return error.details.drift;
      }
      return undefined;
    };
    expect(read(new Error('another'))).toBeUndefined();
  });
});
