/** Responses API of OpenAI. */
import { ANSWER, ARGS, REASONING, TEXT, type Service } from './service.ts';
import { events, halves, json, type WireBody, type WireEvent, type WireReply } from './wire-server.ts';

type Item = { readonly id: string; readonly type: string; readonly [field: string]: unknown };

const reasoning: readonly Item[] = [
  {
    ...{ id: 'rs_1', type: 'reasoning', encrypted_content: 'ENCRYPTED/1+==' },
    summary: [{ type: 'summary_text', text: REASONING }],
  },
  // Without a summary there is only what is encrypted.
  { id: 'rs_2', type: 'reasoning', encrypted_content: 'ENCRYPTED/2+==', summary: [] },
];
const firstStep: readonly Item[] = [
  ...reasoning,
  messageItem('msg_1', TEXT),
  callItem('fc_1', 'call_a', 'weather', JSON.stringify(ARGS)),
  callItem('fc_2', 'call_b', 'now', '{}'),
];
const secondStep: readonly Item[] = [messageItem('msg_2', ANSWER)];

const usage = {
  ...{ input_tokens: 100, output_tokens: 20, total_tokens: 120 },
  ...{ input_tokens_details: { cached_tokens: 40 }, output_tokens_details: { reasoning_tokens: 8 } },
};

export const openaiResponses: Service = {
  path: '/v1/responses',
  firstStep: ({ body }) => reply(body, firstStep),
  secondStep: ({ body }) => reply(body, secondStep),
  firstEvents: eventsOf(firstStep),
  // Its start, and all of the items before the text.
  eventsUntilText: eventsOf(reasoning).length - 1,
  itemsOfFirstStep: firstStep.map(essence),
  itemsIn: (body) =>
    inputOf(body)
      .filter(
        (item) => item.type === 'reasoning' || item.type === 'function_call' || item.role === 'assistant',
      )
      .map(essence),
  resultsIn: (body) =>
    inputOf(body)
      .filter(({ type }) => type === 'function_call_output')
      .map(({ call_id, output }) => ({ id: call_id, content: output })),
};

/** A search that OpenAI runs itself. */
export const searchItems: readonly Item[] = [
  { id: 'rs_9', type: 'reasoning', encrypted_content: 'ENCRYPTED/9+==', summary: [] },
  {
    ...{ id: 'ws_1', type: 'web_search_call', status: 'completed' },
    action: {
      type: 'search',
      query: 'oslo weather',
      sources: [{ type: 'url', url: 'https://example.com/oslo' }],
    },
  },
  messageItem('msg_9', ANSWER),
];
export const searchReply = ({ body }: { readonly body: WireBody }): WireReply => reply(body, searchItems);

export function inputOf(body: WireBody): readonly { readonly [field: string]: unknown }[] {
  return body.input as ReturnType<typeof inputOf>;
}

/** What must come back of an item. Ids of messages and calls may stay away when nothing is stored; those of reasoning may not. */
function essence(item: { readonly [field: string]: unknown }): unknown {
  switch (item.type) {
    case 'reasoning':
      return { type: item.type, id: item.id, encrypted: item.encrypted_content, summary: item.summary };
    case 'function_call':
      return { type: item.type, id: item.call_id, name: item.name, arguments: item.arguments };
    default:
      return { type: 'message', text: textIn(item.content) };
  }
}

function textIn(content: unknown): unknown {
  return typeof content === 'string' ? content : (content as readonly { readonly text: string }[])[0]?.text;
}

function messageItem(id: string, text: string): Item {
  const content = [{ type: 'output_text', text, annotations: [], logprobs: [] }];
  return { id, type: 'message', role: 'assistant', status: 'completed', content };
}

function callItem(id: string, callId: string, name: string, args: string): Item {
  return { id, type: 'function_call', call_id: callId, name, arguments: args, status: 'completed' };
}

function reply(body: WireBody, output: readonly Item[]): WireReply {
  return body.stream === true ? events(eventsOf(output)) : json(responseOf(output, 'completed'));
}

function responseOf(output: readonly Item[], status: string): object {
  return {
    ...{ id: 'resp_1', object: 'response', created_at: 1_700_000_000, model: 'gpt-5-test', status },
    ...{ error: null, incomplete_details: null, output, usage, service_tier: 'default' },
  };
}

function eventsOf(output: readonly Item[]): readonly WireEvent[] {
  const list: WireEvent[] = [
    { type: 'response.created', response: responseOf([], 'in_progress') },
    ...output.flatMap(itemEvents),
    { type: 'response.completed', response: responseOf(output, 'completed') },
  ];
  return list.map((event, sequence_number) => ({ ...event, sequence_number }));
}

function itemEvents(item: Item, output_index: number): readonly WireEvent[] {
  const place = { item_id: item.id, output_index };
  const added = (changes: object): WireEvent => {
    return { type: 'response.output_item.added', output_index, item: { ...item, ...changes } };
  };
  const done: WireEvent = { type: 'response.output_item.done', output_index, item };
  switch (item.type) {
    case 'reasoning':
      return [added({ encrypted_content: null, summary: [] }), ...summaryEvents(item, place), done];
    case 'message': {
      const deltas = halves(textIn(item.content) as string).map((delta) => ({
        ...{ type: 'response.output_text.delta', ...place, content_index: 0, delta, logprobs: [] },
      }));
      return [added({ status: 'in_progress', content: [] }), ...deltas, done];
    }
    case 'function_call': {
      const deltas = halves(item.arguments as string).map((delta) => ({
        ...{ type: 'response.function_call_arguments.delta', ...place, delta },
      }));
      const end = { type: 'response.function_call_arguments.done', ...place, arguments: item.arguments };
      return [added({ status: 'in_progress', arguments: '' }), ...deltas, end, done];
    }
    default:
      return [added({ status: 'in_progress' }), done];
  }
}

function summaryEvents(item: Item, place: object): readonly WireEvent[] {
  const summary = item.summary as readonly { readonly text: string }[];
  return summary.flatMap(({ text }, summary_index) => [
    {
      ...{ type: 'response.reasoning_summary_part.added', ...place, summary_index },
      part: { type: 'summary_text', text: '' },
    },
    ...halves(text).map((delta) => ({
      ...{ type: 'response.reasoning_summary_text.delta', ...place, summary_index, delta },
    })),
    {
      ...{ type: 'response.reasoning_summary_part.done', ...place, summary_index },
      part: { type: 'summary_text', text },
    },
  ]);
}
