/** `npm run demo -- --live` against a server that speaks OpenAI's chat completions, with models that do as they like. */
import { execFile } from 'node:child_process';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';

const demo = path.resolve(import.meta.dirname, '../../demo/demo.mjs');

interface Call {
  readonly name: string;
  readonly args: object;
  readonly id?: string;
}
/** One response: words, or calls. */
type Response = string | readonly Call[];

interface Asked {
  readonly model: string;
  readonly messages: readonly { readonly role: string; readonly tool_call_id?: string }[];
  readonly tools: readonly unknown[];
}

/** Answers by the number of responses that a request shows, so that one that is made again gets the same. */
async function givenServer(script: readonly Response[], status = 200) {
  const asked: Asked[] = [];
  const server = createServer((request, response) => {
    void (async () => {
      response.setHeader('content-type', 'application/json');
      if (request.url === '/v1/models')
        return response.end(JSON.stringify({ data: [{ id: 'local-model' }] }));
      const body = JSON.parse(await textOf(request)) as Asked;
      asked.push(body);
      const step = body.messages.filter(({ role }) => role === 'assistant').length;
      response.statusCode = status;
      response.end(JSON.stringify(status === 200 ? completion(script[step] ?? 'Done.', step) : refusal));
    })();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { asked, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1` };
}

const refusal = { error: { message: 'Incorrect API key provided.', type: 'invalid_request_error' } };

function completion(response: Response, step: number): object {
  const isText = typeof response === 'string';
  const message = isText
    ? { role: 'assistant', content: response }
    : {
        role: 'assistant',
        content: null,
        tool_calls: response.map(({ name, args, id }, index) => ({
          id: id ?? `call_${step}_${index}`,
          type: 'function',
          function: { name, arguments: JSON.stringify(args) },
        })),
      };
  return {
    id: `completion-${step}`,
    object: 'chat.completion',
    created: 1,
    model: 'local-model',
    choices: [{ index: 0, message, finish_reason: isText ? 'stop' : 'tool_calls' }],
    usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
  };
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  return text;
}

const keys = ['OPENAI_API_KEY', 'OPENAI_BASE_URL', 'ANTHROPIC_API_KEY', 'LOUSHO_DEMO_FAULT'];
const cleanEnv = Object.fromEntries(Object.entries(process.env).filter(([name]) => !keys.includes(name)));

function runDemo(
  env: { readonly [name: string]: string },
  ...options: readonly string[]
): Promise<{ readonly code: number; readonly output: string }> {
  return new Promise((resolve) => {
    const args = [demo, '--live', '--yes', ...options];
    execFile(process.execPath, args, { env: { ...cleanEnv, ...env } }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), output: stdout + stderr });
    });
  });
}

const charge: Call = { name: 'charge_card', args: { order: 1042, cents: 7_900 } };
const ship: Call = { name: 'ship_order', args: { order: 1042 } };
const email: Call = { name: 'send_email', args: { order: 1042, text: 'On its way.' } };
const refund: Call = { name: 'refund', args: { order: 1042, cents: 1_200, reason: 'one cup' } };

it('is killed in the middle of a tool, goes on, waits for a person, and holds what is promised', async () => {
  const { asked, url } = await givenServer([[charge], [ship, email], [refund], 'All is done.']);
  const { code, output } = await runDemo({ OPENAI_BASE_URL: url });
  expect(output).toContain('The model is local-model (openai-compatible).');
  expect(output).toContain('SIGKILL: the process is gone, in the middle of charge_card');
  expect(output).toContain('charge_card begins again, with the same idempotency key');
  expect(output).toContain('All is done.');
  expect(output).toContain('Everything held.');
  expect(code).toBe(0);
  // Killed behind a stored response: none was asked for twice.
  expect(asked.map(({ messages }) => messages.filter(({ role }) => role === 'assistant').length)).toEqual([
    0, 1, 2, 3,
  ]);
  expect(asked[0]?.tools).toHaveLength(4);
});

/** What it does, and what the demo says to that. */
const unruly: readonly { readonly script: readonly Response[]; readonly says: string }[] = [
  { script: ['I would rather not.'], says: 'the model called no tool that could be killed' },
  {
    // Twice, in its own order, and under one id.
    script: [
      [{ ...email, id: 'call_0' }],
      [{ ...charge, id: 'call_0' }],
      [{ ...charge, id: 'call_0' }],
      [refund, { ...refund, id: 'again' }],
      [{ ...refund, id: 'call_0' }],
      'Well.',
    ],
    says: 'SIGKILL: the process is gone, in the middle of send_email',
  },
  {
    // Wrong arguments, and a tool that is not there.
    script: [
      [
        { name: 'charge_card', args: { order: 'x' } },
        { name: 'teleport', args: {} },
      ],
      [ship],
      'Sorry.',
    ],
    says: 'SIGKILL: the process is gone, in the middle of ship_order',
  },
];

it('holds whatever the model does', async () => {
  // Beside each other: most of their time they wait.
  const runs = unruly.map(async ({ script, says }) => {
    const { url } = await givenServer(script);
    const { code, output } = await runDemo({ OPENAI_BASE_URL: url }, '--model', 'another-model');
    expect(output).toContain('The model is another-model');
    expect(output).toContain(says);
    expect(output).toContain('Everything held.');
    expect(code).toBe(0);
  });
  await Promise.all(runs);
});

it('has a check that can fail', async () => {
  const runs = ['double-charge', 'double-refund', 'ran-again', 'lost-result'].map(async (fault) => {
    const { url } = await givenServer([[charge], [ship, email], [refund], 'All is done.']);
    const { code, output } = await runDemo({ OPENAI_BASE_URL: url, LOUSHO_DEMO_FAULT: fault });
    expect(output, fault).toContain('FAILED');
    expect(code).toBe(1);
  });
  await Promise.all(runs);
});

it('says what a service says that refuses', async () => {
  const { url } = await givenServer([], 401);
  const { code, output } = await runDemo({ OPENAI_BASE_URL: url, OPENAI_API_KEY: 'secret-1' });
  expect(output).toContain('The model failed:');
  expect(output).not.toContain('secret-1');
  expect(code).toBe(1);
});

it('says how to go live when there is no key', async () => {
  const { code, output } = await runDemo({});
  for (const name of ['OPENAI_API_KEY', 'ANTHROPIC_API_KEY', 'OPENAI_BASE_URL'])
    expect(output).toContain(name);
  expect(code).toBe(2);
});

it.each([
  [['--crashes', '3'], '--live is killed once'],
  [['--model'], "'--model <value>' argument missing"],
])('refuses %j', async (options, says) => {
  const { code, output } = await runDemo({}, ...options);
  expect(output).toContain(says);
  expect(code).toBe(2);
});
