/** Messages API of Anthropic. */
import { ANSWER, ARGS, REASONING, TEXT, type Service } from './service.ts';
import { events, halves, json, type WireBody, type WireEvent, type WireReply } from './wire-server.ts';

type Block = { readonly type: string; readonly [field: string]: unknown };

const thinking: readonly Block[] = [
  { type: 'thinking', thinking: REASONING, signature: 'SIGNATURE/1+==' },
  // Some models do not show what they thought, and want the signature back all the same.
  { type: 'thinking', thinking: '', signature: 'SIGNATURE/2+==' },
  { type: 'redacted_thinking', data: 'REDACTED/1+==' },
];
const firstStep: readonly Block[] = [
  ...thinking,
  { type: 'text', text: TEXT },
  { type: 'tool_use', id: 'toolu_a', name: 'weather', input: ARGS },
  { type: 'tool_use', id: 'toolu_b', name: 'now', input: {} },
];
const secondStep: readonly Block[] = [{ type: 'text', text: ANSWER }];

const usage = {
  ...{ input_tokens: 60, output_tokens: 20 },
  ...{ cache_read_input_tokens: 40, cache_creation_input_tokens: 5 },
};

export const anthropic: Service = {
  path: '/v1/messages',
  firstStep: ({ body }) => reply(body, firstStep, 'tool_use'),
  secondStep: ({ body }) => reply(body, secondStep, 'end_turn'),
  firstEvents: eventsOf(firstStep, 'tool_use'),
  eventsUntilText: eventsOf(thinking, '').length,
  itemsOfFirstStep: firstStep,
  itemsIn: (body) => messagesOf(body).find(({ role }) => role === 'assistant')?.content ?? [],
  resultsIn: (body) =>
    (messagesOf(body).at(-1)?.content ?? []).map((block) => ({
      id: block.tool_use_id,
      content: block.content,
    })),
};

/** A search that Anthropic runs itself, with what it wants back of it. */
export const searchBlocks: readonly Block[] = [
  { type: 'thinking', thinking: 'Search.', signature: 'SIGNATURE/3+==' },
  { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'oslo weather' } },
  {
    type: 'web_search_tool_result',
    tool_use_id: 'srvtoolu_1',
    content: [
      {
        ...{ type: 'web_search_result', url: 'https://example.com/oslo', title: 'Oslo' },
        ...{ encrypted_content: 'ENCRYPTED/1+==', page_age: '1 day' },
      },
    ],
  },
  {
    type: 'text',
    text: ANSWER,
    citations: [
      {
        type: 'web_search_result_location',
        cited_text: '7',
        url: 'https://example.com/oslo',
        title: 'Oslo',
        encrypted_index: 'INDEX/1+==',
      },
    ],
  },
];
export const searchReply = ({ body }: { readonly body: WireBody }): WireReply =>
  reply(body, searchBlocks, 'end_turn');

function messagesOf(
  body: WireBody,
): readonly { readonly role: string; readonly content: readonly Block[] }[] {
  return body.messages as ReturnType<typeof messagesOf>;
}

function reply(body: WireBody, content: readonly Block[], stopReason: string): WireReply {
  return body.stream === true ? events(eventsOf(content, stopReason)) : json(messageOf(content, stopReason));
}

function messageOf(content: readonly Block[], stopReason: string | null): object {
  return {
    ...{ id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-test' },
    ...{ content, stop_reason: stopReason, stop_sequence: null, usage },
  };
}

function eventsOf(content: readonly Block[], stopReason: string): readonly WireEvent[] {
  return [
    { type: 'message_start', message: messageOf([], null) },
    { type: 'ping' },
    ...content.flatMap((block, index) => [
      { type: 'content_block_start', index, content_block: opened(block) },
      ...deltasOf(block).map((delta) => ({ type: 'content_block_delta', index, delta })),
      { type: 'content_block_stop', index },
    ]),
    ...(stopReason === ''
      ? []
      : [
          { type: 'message_delta', delta: { stop_reason: stopReason, stop_sequence: null }, usage },
          { type: 'message_stop' },
        ]),
  ];
}

/** What streams bring piece by piece is empty at first. */
function opened(block: Block): Block {
  switch (block.type) {
    case 'thinking':
      return { ...block, thinking: '', signature: '' };
    case 'text':
      return { type: 'text', text: '' };
    case 'tool_use':
    case 'server_tool_use':
      return { ...block, input: {} };
    default:
      return block;
  }
}

function deltasOf(block: Block): readonly Block[] {
  switch (block.type) {
    case 'thinking':
      return [
        ...halves(block.thinking as string).map((text) => ({ type: 'thinking_delta', thinking: text })),
        { type: 'signature_delta', signature: block.signature },
      ];
    case 'text':
      return [
        ...((block.citations ?? []) as readonly object[]).map((citation) => ({
          type: 'citations_delta',
          citation,
        })),
        ...halves(block.text as string).map((text) => ({ type: 'text_delta', text })),
      ];
    case 'tool_use':
    case 'server_tool_use':
      // A call without arguments streams none.
      return Object.keys(block.input as object).length === 0
        ? []
        : halves(JSON.stringify(block.input)).map((text) => ({
            type: 'input_json_delta',
            partial_json: text,
          }));
    default:
      return [];
  }
}
