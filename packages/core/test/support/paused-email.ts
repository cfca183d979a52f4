/** One email that waits for a yes: what most tests of approvals begin with. */
import { mockModel, type MockResponse } from '@lousho/testing';
import { emailTool } from './tools.ts';
import type { World } from './world.ts';

export const askForEmail: MockResponse = {
  toolCalls: [{ name: 'email', args: { to: 'bob@example.com' }, id: 'call_email' }],
};

/** `chat-42` waits for a yes to one email. */
export async function givenPausedOnEmail(world: World, ...answers: readonly MockResponse[]) {
  const email = emailTool();
  const model = mockModel([askForEmail, ...answers]);
  const agent = world.agent({ provider: model, tools: [email.tool], instructions: 'Mail.' });
  const paused = await agent.send('email bob', { sessionId: 'chat-42' });
  if (paused.finishReason !== 'awaiting-approval') throw new Error(`It ended ${paused.finishReason}.`);
  return { email, model, agent, paused, id: paused.approvalId };
}
