/** Leads and sub-agents as most tests of delegation need them. */
import type { SubAgent } from '@lousho/contract';
import { mockModel, type MockModel, type MockResponse } from '@lousho/testing';

/** A call of `task`, under an id that names the sub-agent. */
export function task(agent: string, prompt = `Work, ${agent}.`) {
  return { name: 'task', args: { agent, prompt }, id: `call_${agent}` };
}

export function delegate(...agents: readonly string[]): MockResponse {
  return { toolCalls: agents.map((agent) => task(agent)) };
}

/** Tasks that the lead does not wait for, each for the sub-agent of that name. */
export function inBackground(...agents: readonly string[]): MockResponse {
  return { toolCalls: agents.map(backgroundTask) };
}

export function backgroundTask(agent: string) {
  const { name, args, id } = task(agent);
  return { name, args: { ...args, background: true }, id };
}

export function awaiting(...taskIds: readonly string[]): MockResponse {
  return { toolCalls: [{ name: 'agent_await', args: { taskIds }, id: 'call_await' }] };
}

export function calling(...names: readonly string[]): MockResponse {
  return { toolCalls: names.map((name) => ({ name, id: `call_${name}` })) };
}

export interface ScriptedSubAgent {
  readonly subagent: SubAgent;
  readonly model: MockModel;
}

/** A sub-agent with a model of its own. */
export function scripted(
  name: string,
  script: readonly MockResponse[],
  more: Partial<SubAgent> = {},
): ScriptedSubAgent {
  const model = mockModel(script, { modelId: `${name}-model` });
  return { subagent: { name, description: `Does ${name} work.`, provider: model, ...more }, model };
}
