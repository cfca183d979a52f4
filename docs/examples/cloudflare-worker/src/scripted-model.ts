/** Stands for your model, so that the example needs no key: the first thing that has not been done is what it does next. */
import type { LLMProvider, LLMResponse, Message } from '@lousho/core';

const STEPS = ['reserve', 'charge'] as const;

export const scriptedModel: LLMProvider = {
  providerId: 'scripted',
  modelId: 'scripted-1',
  async generate({ messages }) {
    const done = messages.flatMap(resultsIn).length;
    const order = /order (\d+)/.exec(JSON.stringify(messages))?.[1] ?? '';
    const toolName = STEPS[done];
    if (toolName === undefined) return response({ type: 'text', text: `Order ${order} is charged.` }, 'stop');
    return response(
      { type: 'tool-call', toolCallId: `call_${done + 1}`, toolName, args: { order } },
      'tool-calls',
    );
  },
};

type Part = LLMResponse['message']['content'][number];

function response(part: Part, finishReason: LLMResponse['finishReason']): LLMResponse {
  return {
    message: { role: 'assistant', content: [part] },
    finishReason,
    usage: { inputTokens: 40, outputTokens: 8 },
  };
}

function resultsIn(message: Message): readonly unknown[] {
  return message.role === 'tool' ? message.content : [];
}
