import { LLMProviderError } from '@lousho/core';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { inputMessages, outputMessage, systemInstructions } from '../src/content.ts';
import { calling, tool } from './support/tools.ts';
import { Traced } from './support/traced.ts';

let traced: Traced;
beforeEach(() => void (traced = new Traced()));
afterEach(() => traced.end());

const SECRET = 'sesame';

/** The secret is wherever somebody can say something. */
async function tellSecrets(recordContent?: boolean): Promise<void> {
  const broken = tool('broken', () => {
    throw new Error(`no ${SECRET}`);
  });
  const asked = tool('asked', () => SECRET, { needsApproval: true });
  const busy = new LLMProviderError(`busy with ${SECRET}`, { kind: 'api', status: 503, retryable: true });
  const fatal = new LLMProviderError(`bad ${SECRET}`, { kind: 'api', status: 400, retryable: false });
  const { agent } = traced.process({
    instructions: `Never say ${SECRET}.`,
    tools: [tool('open', () => ({ word: SECRET })), broken, asked],
    script: [
      { ...(calling(['open', { word: SECRET }], 'broken') as object), text: SECRET, reasoning: SECRET },
      busy,
      calling(['asked', { word: SECRET }]),
      fatal,
    ],
    ...(recordContent === undefined ? undefined : { otel: { recordContent } }),
  });
  const paused = await traced.letTimePass(agent.send(`Open, ${SECRET}!`, { sessionId: 's' }));
  const decision = { id: paused.approvalId ?? '', approved: true, by: 'ada', note: SECRET };
  await expect(agent.approvals.resolve(decision)).rejects.toThrow(SECRET);
}

async function everythingThatWentOut(): Promise<string> {
  const spans = traced.spans().map(({ name, attributes, events, status, links }) => ({
    ...{ name, attributes, events, status, links },
  }));
  return JSON.stringify([spans, [...(await traced.metrics())]]);
}

describe('what people, models and tools say', () => {
  it('does not go out unless it is asked for', async () => {
    await tellSecrets();
    expect(traced.spans().length).toBeGreaterThan(8);
    expect(await everythingThatWentOut()).not.toContain(SECRET);
  });

  it('is on the spans when it is asked for, in the shapes of the conventions', async () => {
    await tellSecrets(true);
    const [first, retried] = traced.named('chat mock');
    expect(json(first, 'gen_ai.system_instructions')).toEqual([
      { type: 'text', content: 'Never say sesame.' },
    ]);
    expect(json(first, 'gen_ai.input.messages')).toEqual([
      { role: 'user', parts: [{ type: 'text', content: 'Open, sesame!' }] },
    ]);
    expect(json(first, 'gen_ai.output.messages')).toEqual([
      {
        role: 'assistant',
        parts: [
          { type: 'reasoning', content: 'sesame' },
          { type: 'text', content: 'sesame' },
          { type: 'tool_call', id: 'call_open', name: 'open', arguments: { word: 'sesame' } },
          { type: 'tool_call', id: 'call_broken', name: 'broken', arguments: {} },
        ],
      },
    ]);
    expect(json(first, 'gen_ai.tool.definitions')).toEqual([
      { type: 'function', name: 'open' },
      { type: 'function', name: 'broken' },
      { type: 'function', name: 'asked' },
    ]);
    expect(retried?.status.message).toBe('busy with sesame');
    expect(json(retried, 'gen_ai.input.messages')).toMatchObject([
      { role: 'user' },
      { role: 'assistant' },
      {
        role: 'tool',
        parts: [{ type: 'tool_call_response', id: 'call_open', response: { word: 'sesame' } }],
      },
      { role: 'tool', parts: [{ type: 'tool_call_response', response: { error: 'no sesame' } }] },
    ]);
    const open = traced.only('execute_tool open');
    expect(json(open, 'gen_ai.tool.call.arguments')).toEqual({ word: 'sesame' });
    expect(json(open, 'gen_ai.tool.call.result')).toEqual({ word: 'sesame' });
    expect(traced.only('execute_tool broken').status.message).toBe('no sesame');
  });

  it('is the answer on the span of the agent', async () => {
    const { agent } = traced.process({ script: ['Hello.'], otel: { recordContent: true } });
    await agent.send('Hi.');
    expect(json(traced.only('invoke_agent clerk'), 'gen_ai.output.messages')).toEqual([
      { role: 'assistant', parts: [{ type: 'text', content: 'Hello.' }] },
    ]);
  });
});

describe('the shape of a message', () => {
  it('leaves out bytes, and what only its provider can read', () => {
    const signed = { anthropic: { signature: 'c2lnbmF0dXJl' } };
    const text = outputMessage({
      role: 'assistant',
      content: [
        { type: 'reasoning', text: '', providerMetadata: signed },
        { type: 'custom', kind: 'openai.compaction', data: { encrypted: 'c2VjcmV0' } },
        {
          type: 'tool-call',
          toolCallId: 'w',
          toolName: 'web_search',
          args: { q: 'x' },
          providerExecuted: true,
        },
        { type: 'tool-result', toolCallId: 'w', toolName: 'web_search', result: ['hit'] },
        { type: 'text', text: 'Found.', providerMetadata: signed },
      ],
    });
    expect(JSON.parse(text)).toEqual([
      {
        role: 'assistant',
        parts: [
          { type: 'openai.compaction' },
          {
            type: 'server_tool_call',
            id: 'w',
            name: 'web_search',
            server_tool_call: { type: 'web_search', arguments: { q: 'x' } },
          },
          {
            type: 'server_tool_call_response',
            id: 'w',
            server_tool_call_response: { type: 'web_search', result: ['hit'] },
          },
          { type: 'text', content: 'Found.' },
        ],
      },
    ]);
    const files = inputMessages([
      {
        role: 'user',
        content: [
          { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'iVBORw0KGgo=' } },
          { type: 'file', mediaType: 'audio/wav', data: { type: 'url', url: 'https://a.example/b.wav' } },
          {
            type: 'file',
            mediaType: 'application/pdf',
            data: { type: 'reference', reference: { openai: 'f-1' } },
          },
          { type: 'file', mediaType: 'text/plain', data: { type: 'text', text: 'plain' } },
        ],
      },
    ]);
    expect(JSON.parse(files)).toEqual([
      {
        role: 'user',
        parts: [
          { type: 'inline_file', mime_type: 'image/png', modality: 'image', base64_length: 12 },
          { type: 'uri', mime_type: 'audio/wav', modality: 'audio', uri: 'https://a.example/b.wav' },
          { type: 'file', mime_type: 'application/pdf', modality: 'document', file_id: 'f-1' },
          { type: 'text', content: 'plain' },
        ],
      },
    ]);
  });

  it('keeps the system messages of the conversation in it, and the leading ones apart', () => {
    const messages = [
      { role: 'system', content: 'Be kind.' },
      { role: 'user', content: 'Hi.' },
      { role: 'system', content: 'Be quick.' },
    ] as const;
    expect(JSON.parse(systemInstructions(messages) ?? '')).toEqual([{ type: 'text', content: 'Be kind.' }]);
    expect(JSON.parse(inputMessages(messages))).toMatchObject([{ role: 'user' }, { role: 'system' }]);
    expect(systemInstructions(messages.slice(1))).toBeUndefined();
  });
});

function json(span: ReadableSpan | undefined, name: string): unknown {
  return JSON.parse(String(span?.attributes[name]));
}
