/** The tools of an MCP server over processes that die: agent and server are processes of their own, the run is in SQLite. */
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { McpToolsOptions } from '@lousho/mcp';
import type { MockResponse } from '@lousho/testing';
import type { ApprovalDecision, ApprovalRequest, ExecutionResult } from '@lousho/core';
import { afterEach, expect, it } from 'vitest';
import { until } from '../src/until.ts';

type Action =
  | { readonly type: 'send'; readonly text: string }
  | { readonly type: 'resume' }
  | { readonly type: 'resolve'; readonly decision: ApprovalDecision };
type Printed = Pick<ExecutionResult, 'finishReason' | 'approvalId' | 'toolCalls'> & {
  readonly approvals: readonly ApprovalRequest[];
};
interface Work {
  readonly action: Action;
  readonly responses: readonly MockResponse[];
  readonly tools?: McpToolsOptions;
}

const worker = fileURLToPath(new URL('../workers/mcp-worker.mjs', import.meta.url));
const server = fileURLToPath(
  new URL('../../../packages/mcp/test/support/ledger-server.mjs', import.meta.url),
);

class World {
  readonly #folder = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'lousho-mcp-rig-')));
  readonly #ledger = path.join(this.#folder, 'ledger');

  /** What the server did, in order. */
  ledger(): readonly { readonly did: string; readonly key?: string; readonly args: unknown }[] {
    if (!fs.existsSync(this.#ledger)) return [];
    // A line is there when its end is.
    const lines = fs.readFileSync(this.#ledger, 'utf8').split('\n').slice(0, -1);
    return lines.map((line) => JSON.parse(line) as ReturnType<World['ledger']>[number]);
  }

  /** A process of its own does this to its end. */
  async run(work: Work): Promise<Printed> {
    const { child, printed } = this.#start(work);
    const code = await new Promise((resolve) => child.once('close', resolve));
    expect(code, printed()).toBe(0);
    return JSON.parse(printed()) as Printed;
  }

  /** A process of its own does this, and is killed as soon as the server has done `count` things in all. */
  async runAndKill(work: Work, count: number): Promise<void> {
    const { child } = this.#start(work);
    const closed = new Promise((resolve) => child.once('close', resolve));
    await until(() => this.ledger().length === count);
    child.kill('SIGKILL');
    await closed;
  }

  #start(work: Work) {
    const job = {
      ...work,
      serverArgs: [server, this.#ledger],
      dbPath: path.join(this.#folder, 'agent.db'),
      sessionId: 'order-7',
    };
    const child = spawn(process.execPath, [worker, JSON.stringify(job)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let text = '';
    child.stdout.on('data', (data: Buffer) => (text += String(data)));
    return { child, printed: () => text };
  }

  remove(): void {
    fs.rmSync(this.#folder, { recursive: true, force: true });
  }
}

const worlds: World[] = [];
afterEach(() => {
  for (const world of worlds.splice(0)) world.remove();
});

function newWorld(): World {
  const world = new World();
  worlds.push(world);
  return world;
}

const asks = (name: string, args: Record<string, boolean | number | string>): MockResponse => ({
  toolCalls: [{ name, args }],
});
const send: Action = { type: 'send', text: 'Go.' };
const resume: Action = { type: 'resume' };
const resolve = (id: string, answer: string): Action => ({
  type: 'resolve',
  decision: { id, approved: true, answer },
});

it('does not pay twice when the agent dies between call and result', async () => {
  const world = newWorld();
  const tools: McpToolsOptions = { approve: 'never' };
  await world.runAndKill({ action: send, responses: [asks('pay', { amount: 7, hang: true })], tools }, 1);
  const { finishReason, toolCalls } = await world.run({ action: resume, responses: ['Done.'], tools });
  expect(finishReason).toBe('stop');
  expect(toolCalls[0]).toMatchObject({ isError: true, kind: 'interrupted' });
  expect(world.ledger()).toHaveLength(1);
});

it('calls a trusted tool that only reads again, under the same key', async () => {
  const world = newWorld();
  const look = { action: send, responses: [asks('look', { hang: true })], tools: { trust: true } };
  await world.runAndKill(look, 1);
  await world.runAndKill({ ...look, action: resume }, 2);
  const keys = world.ledger().map(({ key }) => key);
  expect(keys[0]).toEqual(expect.any(String));
  expect(keys[1]).toBe(keys[0]);
});

it('pays once what was approved in one process, cut off in the next, and resumed in a third', async () => {
  const world = newWorld();
  const paused = await world.run({ action: send, responses: [asks('pay', { amount: 7, hang: true })] });
  expect(paused.finishReason).toBe('awaiting-approval');
  expect(world.ledger()).toEqual([]);
  const decision = { id: paused.approvalId ?? '', approved: true };
  await world.runAndKill({ action: { type: 'resolve', decision }, responses: [] }, 1);
  const { toolCalls } = await world.run({ action: resume, responses: ['Done.'] });
  expect(toolCalls[0]).toMatchObject({ isError: true, kind: 'interrupted' });
  expect(world.ledger()).toHaveLength(1);
});

it('goes on in another process with what a tool asked the user in the first, and does it once', async () => {
  const world = newWorld();
  const asked = await world.run({ action: send, responses: [asks('deploy', { env: 'prod', hang: true })] });
  expect(asked.approvals).toMatchObject([{ kind: 'question', toolName: 'deploy' }]);
  let id = asked.approvalId ?? '';
  for (const answer of ['yes', 'eu']) {
    const next = await world.run({ action: resolve(id, answer), responses: [] });
    expect(next.finishReason).toBe('awaiting-approval');
    id = next.approvalId ?? '';
  }
  // The last answer reaches the server, which acts, and then the agent dies.
  await world.runAndKill({ action: resolve(id, '-'), responses: [] }, 2);
  const { toolCalls } = await world.run({ action: resume, responses: ['Done.'] });
  expect(toolCalls[0]).toMatchObject({ kind: 'interrupted' });
  expect(world.ledger().map(({ did }) => did)).toEqual(['ask', 'deploy']);
});
