/** A chat whose server is killed with SIGKILL: the page comes back to the answer, and nothing is done twice. */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { UIMessage } from 'ai';
import { expect, it, onTestFinished } from 'vitest';
import {
  approvalIdsIn,
  openPage,
  partsOf,
  type Page,
  type Version,
} from '../../../packages/http/test/support/chat-page.ts';

const workerFile = fileURLToPath(new URL('../workers/chat-server.mjs', import.meta.url));

type Said =
  { readonly type: 'serving'; readonly port: number } | { readonly type: 'begun'; readonly tool: string };

class ChatServer {
  readonly #child: ChildProcess;

  constructor(folder: string, hangsIn?: string) {
    const job = { storeFolder: folder, logPath: path.join(folder, 'effects.log'), hangsIn };
    this.#child = fork(workerFile, [JSON.stringify(job)], { execArgv: [] });
    onTestFinished(() => this.kill());
  }

  async api(): Promise<string> {
    const said = await this.#hears((message) => message.type === 'serving');
    return `http://127.0.0.1:${said.type === 'serving' ? said.port : 0}/api/chat`;
  }

  async hasBegun(tool: string): Promise<void> {
    await this.#hears((message) => message.type === 'begun' && message.tool === tool);
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const gone = once(this.#child, 'close');
    this.#child.kill('SIGKILL');
    await gone;
  }

  #hears(is: (message: Said) => boolean): Promise<Said> {
    return new Promise((resolve, reject) => {
      this.#child.on('message', (message: Said) => is(message) && resolve(message));
      this.#child.once('exit', () => reject(new Error('The server is gone.')));
    });
  }
}

function givenFolder(): { readonly folder: string; readonly effects: () => readonly string[] } {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'lousho-chat-'));
  onTestFinished(() => fs.rmSync(folder, { recursive: true, force: true }));
  const effects = (): readonly string[] =>
    fs.readFileSync(path.join(folder, 'effects.log'), 'utf8').trim().split('\n');
  return { folder, effects };
}

/** As a browser does that is reloaded: what the server has, and the answer under way. */
async function reloaded(version: Version, api: string): Promise<Page> {
  const { messages } = (await (await fetch(`${api}/chat`)).json()) as { messages: UIMessage[] };
  const page = openPage(version, { api, id: 'chat', messages });
  await page.chat.resumeStream();
  return page;
}

const whole = [
  'text:Let me look.',
  'tool-look:output-available',
  'text:I will refund it.',
  'tool-refund:output-available',
  'text:Done.',
];

it.each<Version>(['v6', 'v7'])(
  'goes on with the answer of a killed server, and with its approval after another kill (%s)',
  async (version) => {
    const { folder, effects } = givenFolder();
    const first = new ChatServer(folder, 'look');
    const firstApi = await first.api();
    const begun = first.hasBegun('look');
    const page = openPage(version, { api: firstApi, id: 'chat' });
    const sent = page.chat.sendMessage({ text: 'Refund order 7.' });
    await begun;
    await first.kill();
    await sent;
    expect(page.chat.status).toBe('error');

    const second = new ChatServer(folder);
    const paused = await reloaded(version, await second.api());
    expect(partsOf(paused.chat.lastMessage)).toEqual([
      ...whole.slice(0, 3),
      'tool-refund:approval-requested',
    ]);
    await second.kill();

    const third = new ChatServer(folder);
    const approving = await reloaded(version, await third.api());
    const [id = ''] = approvalIdsIn(approving.chat.lastMessage);
    await approving.chat.addToolApprovalResponse({ id, approved: true });
    await approving.settled();
    expect(approving.chat.messages.map(partsOf)).toEqual([['text:Refund order 7.'], whole]);
    // What was cut off may run again; what was approved runs once.
    expect(effects()).toEqual(['look', 'look', 'refund']);
  },
);
