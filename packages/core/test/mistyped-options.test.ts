/** An option under a name that nobody knows is refused: it would do nothing, and nobody would notice. */
import { mockModel } from '@lousho/testing';
import { memoryStore } from '@lousho/store-memory';
import { expect, it } from 'vitest';
import { createAgent, isSDKError, type AgentConfig, type SendOptions } from '../src/index.ts';

const provider = mockModel(['Hello.']);

it.each<[string, object]>([
  ['sytem', { provider, sytem: 'Be kind.' }],
  ['lease.ttl', { provider, lease: { ttl: 5 } }],
  ['retry.retries', { provider, retry: { retries: 5 } }],
])('createAgent names %s', (option, config) => {
  expect(refusalOf(() => createAgent(config as AgentConfig))).toMatchObject({ option });
});

it.each([undefined, null, 'provider'])('createAgent says what it takes when it is given %j', (config) => {
  const given = config as unknown as AgentConfig;
  expect(refusalOf(() => createAgent(given))).toMatchObject({ option: 'config' });
});

it.each<[string, unknown]>([
  ['sessionID', { sessionID: 'order-7' }],
  ['options', 'order-7'],
  ['options', null],
])('send, stream and runOnce name %s, and nothing runs', async (option, options) => {
  const model = mockModel(['Hello.']);
  const agent = createAgent({ provider: model, store: memoryStore() });
  const given = options as SendOptions;
  const refused = { code: 'LOUSHO_CONFIG_INVALID', details: expect.objectContaining({ option }) };
  await expect(agent.send('hi', given)).rejects.toMatchObject(refused);
  expect(refusalOf(() => agent.stream('hi', given))).toMatchObject({ option });
  if (typeof options === 'object')
    await expect(agent.runOnce('order-7', 'hi', { ...given, sessionID: 1 } as object)).rejects.toMatchObject({
      code: 'LOUSHO_CONFIG_INVALID',
    });
  expect(model.calls).toEqual([]);
});

it('an option that is there but undefined is none', async () => {
  const agent = createAgent({ provider: mockModel(['Hello.']), ...{ later: undefined } });
  const options = { later: undefined } as SendOptions;
  expect(await agent.send('hi', options)).toMatchObject({ text: 'Hello.' });
});

function refusalOf(act: () => unknown): unknown {
  try {
    act();
  } catch (error) {
    if (isSDKError(error, 'LOUSHO_CONFIG_INVALID')) return error.details;
    throw error;
  }
  throw new Error('It was not refused.');
}
