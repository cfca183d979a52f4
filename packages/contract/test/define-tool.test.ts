/** `defineTool` refuses at once what would fail, or ask nobody, later; `once` asks a person the first time. */
import { describe, expect, expectTypeOf, it } from 'vitest';
import { z } from 'zod';
import {
  defineTool,
  isSDKError,
  once,
  withHandoffMark,
  type ApprovalVerdict,
  type JsonObject,
  type JsonValue,
  type Message,
  type StandardSchema,
  type Tool,
  type ToolContext,
  type ToolResultPart,
} from '../src/index.ts';
import { resultFor, toolMessage, userSays } from './support/checkpoints.ts';

const good = {
  name: 'charge_card',
  description: 'Charges a card.',
  input: z.object({ cents: z.number() }),
  execute: () => 'done',
};

function refused(over: Record<string, unknown>): unknown {
  try {
    defineTool({ ...good, ...over });
  } catch (error) {
    if (!isSDKError(error, 'LOUSHO_CONFIG_INVALID')) throw error;
    return error.details.option;
  }
  return 'nothing was refused';
}

describe('defineTool', () => {
  it('keeps the definition, adds the JSON Schema and freezes both', () => {
    const tool = defineTool({
      ...good,
      timeoutMs: 5,
      needsApproval: true,
      onInterrupted: 'ask',
      sandbox: true,
    });
    expect(tool).toMatchObject({
      ...good,
      timeoutMs: 5,
      needsApproval: true,
      onInterrupted: 'ask',
      sandbox: true,
      inputSchema: { type: 'object', properties: { cents: { type: 'number' } }, required: ['cents'] },
    });
    expect(Object.isFrozen(tool)).toBe(true);
    expect(Object.isFrozen(tool.inputSchema.properties)).toBe(true);
  });

  it.each(['a', 'A-b_9', 'x'.repeat(64), '__proto__'])('takes the name %j', (name) => {
    expect(defineTool({ ...good, name }).name).toBe(name);
  });

  it.each(['', 'x'.repeat(65), 'a b', 'a.b', 'a/b', 'caf\u00e9', 'a\n', undefined, 5])(
    'refuses the name %j',
    (name) => {
      expect(refused({ name })).toBe('tool.name');
    },
  );

  it.each<readonly [string, unknown]>([
    ['description', undefined],
    ['description', 5],
    ['execute', undefined],
    ['execute', 'run'],
    ['input', undefined],
    ['input', null],
    ['input', z.string()],
    ['timeoutMs', 0],
    ['timeoutMs', -1],
    ['timeoutMs', NaN],
    ['maxResultBytes', 0],
    ['maxResultBytes', NaN],
    ['needsApproval', 'always'],
    ['needsApproval', null],
    ['needsApproval', 1],
    ['onInterrupted', 'retry-once'],
    ['onInterrupted', true],
    ['onInterrupted', null],
  ])('refuses %s: %s and names the tool and the option', (field, value) => {
    expect(refused({ [field]: value })).toBe(`tools.charge_card.${field}`);
  });

  it('names the place of what JSON Schema cannot say', () => {
    expect(refused({ input: z.object({ when: z.date() }) })).toBe('tools.charge_card.input.when');
  });

  it.each(['needApproval', 'timeout', 'sandboxed'])(
    'refuses a part named %s: a mistyped one would ask nobody',
    (part) => {
      expect(refused({ [part]: true })).toBe(`tools.charge_card.${part}`);
    },
  );

  it("refuses an instance whose methods are its class's: they would be lost, the approval rule among them", () => {
    class PayTool {
      readonly name = 'pay';
      readonly description = 'Pays.';
      readonly input = good.input;
      needsApproval(): boolean {
        return true;
      }
      execute(): string {
        return 'paid';
      }
    }
    expect(() => defineTool(new PayTool())).toThrow('must be a function of the object itself');
  });

  it('infers the arguments and the result', () => {
    const tool = defineTool({
      ...good,
      input: z.object({
        when: z.iso.datetime().transform((text) => new Date(text)),
        tag: z.string().default(''),
      }),
      needsApproval: (args) => {
        expectTypeOf(args).toEqualTypeOf<{ when: Date; tag: string }>();
        return args.tag !== '';
      },
      onInterrupted: async (args, ctx) => {
        expectTypeOf(args.when).toEqualTypeOf<Date>();
        expectTypeOf(ctx).toEqualTypeOf<ToolContext>();
        return { result: 5 };
      },
      async execute(args, ctx) {
        expectTypeOf(args).toEqualTypeOf<{ when: Date; tag: string }>();
        expectTypeOf(ctx.signal).toEqualTypeOf<AbortSignal>();
        return args.when.getTime();
      },
    });
    expectTypeOf(tool).toEqualTypeOf<Tool<{ when: Date; tag: string }, number>>();
    expectTypeOf([tool]).toExtend<readonly Tool[]>();
    expectTypeOf<Parameters<typeof tool.execute>[0]>().toEqualTypeOf<{ when: Date; tag: string }>();
    expect(tool.inputSchema.type).toBe('object');
  });

  it('infers any object from a plain JSON Schema, and the output of another Standard Schema', () => {
    const plain = defineTool({ ...good, input: { type: 'object' }, execute: (args) => args });
    expectTypeOf<Parameters<typeof plain.execute>[0]>().toEqualTypeOf<JsonObject>();
    expect(plain.execute({ any: 1 }, contextOf([]))).toEqual({ any: 1 });
    const input = {
      '~standard': {
        version: 1,
        vendor: 'x',
        validate: (value: unknown) => ({ value: value as { n: number } }),
        jsonSchema: { input: () => ({ type: 'object' }) },
      },
    } as StandardSchema<{ n: string }, { n: number }>;
    const other = defineTool({ ...good, input, execute: ({ n }) => n });
    expectTypeOf<Parameters<typeof other.execute>[0]>().toEqualTypeOf<{ n: number }>();
    expect(other.execute({ n: 5 }, contextOf([]))).toBe(5);
  });
});

describe('once', () => {
  const byPerson = { id: 'x', approved: true, decidedAt: 'now' } as const;
  const asked = (messages: readonly Message[], args: JsonValue = {}, rule = once()): unknown =>
    (rule as (args: unknown, ctx: ToolContext) => ApprovalVerdict)(args, contextOf(messages));

  it('asks the first time', () => {
    expect(asked([])).toBe(true);
    expect(asked([userSays('pay')])).toBe(true);
  });

  it('does not ask again after a person said yes', () => {
    expect(asked(answered('pay', {}, byPerson))).toBe(false);
    expect(asked([...answered('pay', {}, byPerson), userSays('more'), ...answered('look', {})])).toBe(false);
  });

  it.each<readonly [string, readonly Message[]]>([
    ['a callback said yes', answered('pay', {}, { ...byPerson, source: 'callback' })],
    ['a person said no', answered('pay', {}, { ...byPerson, approved: false })],
    ['the approval expired', answered('pay', {}, { ...byPerson, approved: false, source: 'expiry' })],
    ['it ran unasked', answered('pay', {})],
    ['a person said yes to another tool', answered('look', {}, byPerson)],
    ['a person said yes to a call that still runs', answered('pay', {}, byPerson).slice(0, -1)],
  ])('asks again when %s', (_case, messages) => {
    expect(asked(messages)).toBe(true);
  });

  it('asks again behind a handoff: the person agreed to what another agent does', () => {
    const handOver = (mark: boolean): readonly Message[] => {
      const [call, result] = answered('handoff_to_billing', {});
      const part = { ...resultFor('call_0'), toolName: 'handoff_to_billing' };
      const marked = mark ? toolMessage(withHandoffMark(part, { from: 'clerk', to: 'billing' })) : result;
      return [call, marked] as readonly Message[];
    };
    const yes = answered('pay', {}, byPerson);
    expect(asked([...yes, ...handOver(true)])).toBe(true);
    expect(asked([...yes, ...handOver(true), ...yes])).toBe(false);
    expect(asked([...yes, ...handOver(false)])).toBe(false);
  });

  it('per arguments asks once for each, whatever the order of their keys', () => {
    const messages = answered('pay', { to: 'ann', cents: 5 }, byPerson);
    const rule = once({ per: 'args' });
    expect(asked(messages, { cents: 5, to: 'ann' }, rule)).toBe(false);
    expect(asked(messages, { cents: 6, to: 'ann' }, rule)).toBe(true);
    expect(asked(messages, { cents: 6, to: 'ann' }, once({ per: 'tool' }))).toBe(false);
  });
});

/** A step with one call and its result. */
function answered(
  toolName: string,
  args: JsonValue,
  approval?: ToolResultPart['approval'],
): readonly Message[] {
  const result = { ...resultFor('call_0'), toolName, ...(approval === undefined ? {} : { approval }) };
  return [
    { role: 'assistant', content: [{ type: 'tool-call', toolCallId: 'call_0', toolName, args }] },
    toolMessage(result),
  ];
}

function contextOf(messages: readonly Message[]): ToolContext {
  return {
    toolCallId: 'call_9',
    toolName: 'pay',
    idempotencyKey: 'k',
    rerun: false,
    runId: 'r',
    step: 1,
    agentName: 'agent',
    messages,
    metadata: {},
    signal: new AbortController().signal,
    businessState: undefined,
  };
}
