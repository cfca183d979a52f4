/** Runs that delegate over two levels, side by side and with pauses, and die again and again at random store calls. */
import {
  classifyCheckpointId,
  isSDKError,
  type ApprovalRequest,
  type ExecutionResult,
} from '@lousho/contract';
import { memoryStore } from '@lousho/store-memory';
import { manualClock, mockModel, testPorts, type MockResponse } from '@lousho/testing';
import { crashingStore } from '@lousho/testing/crash';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createAgent, type Agent } from '../src/index.ts';
import { awaiting, calling, delegate, inBackground } from './support/delegating.ts';
import { expectValid } from './support/read.ts';
import { spyTool } from './support/tools.ts';
import { letPass, until } from './support/wait.ts';

/** A failure prints its seed; `LOUSHO_SEED=<number>` replays it, `LOUSHO_CASES=<number>` tries more. */
const { LOUSHO_SEED: seed, LOUSHO_CASES: cases = '60' } = process.env;

/** Store calls that each process lives through; the last one lives on. */
const deaths = fc.array(fc.integer({ min: 1, max: 30 }), { maxLength: 12 });
const verdicts = fc.record({ charge: fc.boolean(), mail: fc.boolean(), sign: fc.boolean() });
type Verdicts = typeof verdicts extends fc.Arbitrary<infer Value> ? Value : never;

const sessionId = 'order-7';

it.each([
  ['whose tasks are waited for', false],
  ['whose tasks are in the background', true],
] as const)(
  '%s lose nothing, start nothing over, run what was approved at most once and leave nothing behind',
  async (_which, isInBackground) => {
    await fc.assert(
      fc.asyncProperty(deaths, verdicts, async (callCounts, given) => {
        const world = new DyingWorld(given, isInBackground);
        for (const count of callCounts) await world.liveFor(count);
        const result = await world.liveOn();
        await world.check(result, callCounts.length);
      }),
      { numRuns: Number(cases), ...(seed === undefined ? undefined : { seed: Number(seed) }) },
    );
  },
  120_000,
);

class DyingWorld {
  readonly #clock = manualClock();
  readonly #store = memoryStore({ ports: testPorts(this.#clock) });
  readonly #tools = ['look', 'charge', 'mail', 'sign'].map((name) =>
    spyTool(name, undefined, { needsApproval: name !== 'look' }),
  );
  #answerCount = 0;

  constructor(
    readonly verdicts: Verdicts,
    readonly isInBackground: boolean,
  ) {}

  /** A process that dies behind so many store calls, or ends before. */
  async liveFor(count: number): Promise<void> {
    let calls = 0;
    const clock = manualClock(this.#clock.wallMs());
    const crashing = crashingStore(
      { ...this.#store, checkpoints: { ...this.#store.checkpoints } },
      {
        onPerformed() {
          calls += 1;
          if (calls === count) crashing.kill();
        },
      },
    );
    const agent = this.#agent({ store: crashing.store, ports: testPorts(clock) }, () => !crashing.isDead);
    let isOver = false;
    const end = (): void => void (isOver = true);
    this.#drive(agent).then(end, end);
    await until(async () => {
      // Only waiting for a lease takes time; it dies before it gets it, or goes on.
      await clock.advance(0);
      return isOver || crashing.isDead;
    });
    crashing.kill();
    await this.#clock.advance(10 * 60_000);
  }

  liveOn(): Promise<ExecutionResult> {
    const agent = this.#agent({ store: this.#store, ports: testPorts(this.#clock) }, () => true);
    return letPass(this.#clock, this.#drive(agent));
  }

  async check(result: ExecutionResult, deathCount: number): Promise<void> {
    const { charge, mail, sign } = this.verdicts;
    expect(result).toMatchObject({
      text: 'All done.',
      usage: this.isInBackground
        ? { modelCalls: 11, delegated: { runs: 2, modelCalls: 8 } }
        : { modelCalls: 9, delegated: { runs: 2, modelCalls: 7 } },
    });
    expectValid(result.messages);
    // At most what was on its way when a process died: two sub-agents work at once, in the background beside their leads.
    const lost = this.#answerCount - result.usage.modelCalls;
    expect(lost).toBeLessThanOrEqual((this.isInBackground ? 4 : 2) * deathCount);
    for (const [name, approved] of Object.entries({ charge, mail, sign })) {
      const runs = this.#tools.find(({ tool }) => tool.name === name)?.runs.length ?? 0;
      expect(runs, name).toBeLessThanOrEqual(approved ? 1 : 0);
      if (deathCount === 0) expect(runs, name).toBe(approved ? 1 : 0);
    }
    const left = (await this.#store.checkpoints.list()).map(
      ({ sessionId: id }) => classifyCheckpointId(id).kind,
    );
    expect(left).toEqual(['run']);
    expect(await this.#store.approvals.list()).toEqual([]);
  }

  #agent(on: Pick<Parameters<typeof createAgent>[0], 'store' | 'ports'>, isAlive: () => boolean): Agent {
    const tools = Object.fromEntries(this.#tools.map(({ tool }) => [tool.name, tool]));
    const pick = (...names: readonly string[]) => names.flatMap((name) => tools[name] ?? []);
    const model = (script: readonly MockResponse[]) => {
      const scripted = mockModel(script, { answerBy: 'step' });
      return {
        ...{ providerId: 'mock', modelId: 'mock' },
        generate: async (request: Parameters<typeof scripted.generate>[0]) => {
          const response = await scripted.generate(request);
          if (isAlive()) this.#answerCount += 1;
          return response;
        },
      };
    };
    const mailer = {
      ...{ name: 'mailer', description: 'Mails.', tools: pick('mail') },
      provider: model([calling('mail'), 'Mailed.']),
    };
    const [give = 'Never.', ...wait] = this.#giving('mailer');
    return createAgent({
      ...on,
      provider: model([...this.#giving('manager', 'cashier'), 'All done.']),
      subagents: [
        {
          ...{ name: 'manager', description: 'Manages.', tools: pick('sign'), subagents: [mailer] },
          provider: model([give, calling('sign'), ...wait, 'Managed.']),
        },
        {
          ...{ name: 'cashier', description: 'Handles money.', tools: pick('look', 'charge') },
          provider: model([calling('look', 'charge'), 'Paid.']),
        },
      ],
    });
  }

  /** With the call that waits for them, where their own do not. */
  #giving(...agents: readonly string[]): readonly MockResponse[] {
    const taskIds = agents.map((_agent, index) => `task_${index + 1}`);
    return this.isInBackground ? [inBackground(...agents), awaiting(...taskIds)] : [delegate(...agents)];
  }

  async #drive(agent: Agent): Promise<ExecutionResult> {
    for (;;) {
      const waiting = await sendOrWaiting(agent);
      if (!Array.isArray(waiting)) return waiting as ExecutionResult;
      for (const id of waiting as readonly string[]) {
        const request = await agent.approvals.get(id);
        if (request !== undefined)
          await agent.approvals.resolve({ id, approved: this.#saysYes(request), by: 'ann' });
      }
    }
  }

  #saysYes({ toolName }: ApprovalRequest): boolean {
    return this.verdicts[toolName as keyof Verdicts];
  }
}

async function sendOrWaiting(agent: Agent): Promise<ExecutionResult | readonly string[]> {
  try {
    const result = await agent.send('go', { sessionId, inputId: 'input-1' });
    return result.approvalIds ?? result;
  } catch (error) {
    if (isSDKError(error, 'LOUSHO_SESSION_AWAITING_APPROVAL')) return error.details.approvalIds;
    throw error;
  }
}
