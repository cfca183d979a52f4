/** The chat of `useChat`, and how its page comes back: after a reload, a lost connection, a crash of the server, or news from another tab. */
import { Chat } from '@ai-sdk/react';
import {
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  type UIMessage,
} from 'ai';

const API = '/api/chat';

export interface DurableChat {
  readonly chat: Chat<UIMessage>;
  /** What a person has to know; `undefined` while all is well. */
  readonly notice: string | undefined;
  subscribe(this: void, listener: () => void): () => void;
  stop(): Promise<void>;
  /** An answer has begun to come: other tabs of this conversation follow it as well. */
  tellOtherTabs(): void;
}

export function openChat(id: string): DurableChat {
  return new Durable(id);
}

class Durable implements DurableChat {
  notice: string | undefined = undefined;
  readonly chat: Chat<UIMessage>;
  readonly #listeners = new Set<() => void>();
  readonly #tabs = new BroadcastChannel('chats');
  #isCatchingUp = false;

  constructor(id: string) {
    this.chat = new Chat({
      id,
      transport: new DefaultChatTransport({ api: API }),
      // The last decision of a message posts it.
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
      onError: (error) => this.#failed(error),
      // A proxy that gives up ends a stream as if nothing was wrong.
      onFinish: ({ isAbort, isError, finishReason }) =>
        void (!isAbort && !isError && finishReason === undefined && this.#catchUp()),
    });
    // A message or a decision of another tab or, while this one was not looked at, of another device.
    this.#tabs.onmessage = ({ data }) =>
      void (data === id && this.chat.status === 'ready' && this.#catchUp());
    addEventListener('focus', () => void (this.chat.status === 'ready' && this.#catchUp()));
    void this.#catchUp();
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  /** `chat.stop()` would stop the reading alone: the answer would go on. */
  async stop(): Promise<void> {
    await fetch(`${API}/${this.chat.id}/stop`, { method: 'POST' });
  }

  tellOtherTabs(): void {
    if (!this.#isCatchingUp) this.#tabs.postMessage(this.chat.id);
  }

  /** Shows what the server has, and follows the answer under way, however long it takes until there is one. */
  async #catchUp(): Promise<void> {
    if (this.#isCatchingUp) return;
    this.#isCatchingUp = true;
    for (let waitMs = 250; !(await this.#isThere()); waitMs = Math.min(2 * waitMs, 4_000))
      await new Promise((resolve) => setTimeout(resolve, waitMs));
    this.#isCatchingUp = false;
  }

  /** `false`: the server is away, or something else of it is at this conversation; later it will be there. */
  async #isThere(): Promise<boolean> {
    const stored = await load(this.chat.id);
    if (stored === undefined) {
      this.#say('The connection is lost. Nothing else is: this page comes back by itself.');
      return false;
    }
    this.#say(stored === 'refused' ? 'This conversation cannot be opened.' : undefined);
    if (stored === 'refused') return true;
    // Meanwhile the person has said something: its answer shows what is.
    if (this.chat.status === 'submitted' || this.chat.status === 'streaming') return true;
    const mine = this.chat.messages.filter(({ role }) => role === 'user');
    // What the server died of before it had stored anything. Sent again, it is the same message: it has its id.
    const unsent = mine.slice(stored.filter(({ role }) => role === 'user').length);
    this.chat.messages = [...stored, ...unsent];
    await (unsent.length > 0 ? this.chat.sendMessage() : this.chat.resumeStream());
    return this.chat.error === undefined || !isPassing(this.chat.error);
  }

  #failed(error: Error): void {
    if (isPassing(error)) return void this.#catchUp();
    const code = codeOf(error);
    this.#say(notices[code ?? ''] ?? `That went wrong (${code}). Send something to try it again.`);
    if (code !== undefined && code in notices) void this.#catchUp().then(() => this.#say(notices[code]));
  }

  #say(notice: string | undefined): void {
    this.notice = notice;
    for (const listener of this.#listeners) listener();
  }
}

/** The page was behind: it is shown what is, and what became of the click. */
const notices: Readonly<Record<string, string>> = {
  LOUSHO_APPROVAL_DECIDED: 'Somebody else has decided that already. Your click changed nothing.',
  LOUSHO_APPROVAL_ORPHANED: 'Nobody waits for that decision any more. Your click changed nothing.',
  LOUSHO_SESSION_AWAITING_APPROVAL: 'Something waits for your decision first.',
};

/** `undefined`: the server is away. */
async function load(id: string): Promise<UIMessage[] | 'refused' | undefined> {
  try {
    const response = await fetch(`${API}/${encodeURIComponent(id)}`);
    if (response.ok) return ((await response.json()) as { messages: UIMessage[] }).messages;
    return response.status < 500 ? 'refused' : undefined;
  } catch {
    return undefined;
  }
}

function codeOf({ message }: Error): string | undefined {
  return /LOUSHO_\w+/.exec(message)?.[0];
}

/** Whoever asks later is answered. */
function isPassing(error: Error): boolean {
  const code = codeOf(error);
  return code === undefined || code === 'LOUSHO_SESSION_BUSY' || code === 'LOUSHO_SHUTDOWN';
}
