/** A browser page with the AI SDK's own chat in it, of both versions. */
import * as v6 from 'ai';
import * as v7 from 'ai-v7';
import type { UIMessage } from 'ai';

export type Version = 'v6' | 'v7';
const versions = { v6, v7: v7 as unknown as typeof v6 };

class PageState implements v6.ChatState<UIMessage> {
  status: v6.ChatStatus = 'ready';
  error: Error | undefined;
  constructor(public messages: UIMessage[]) {}
  pushMessage = (message: UIMessage): void => void (this.messages = [...this.messages, message]);
  popMessage = (): void => void (this.messages = this.messages.slice(0, -1));
  replaceMessage = (index: number, message: UIMessage): void =>
    void (this.messages = this.messages.map((one, at) => (at === index ? this.snapshot(message) : one)));
  snapshot = <Value>(value: Value): Value => structuredClone(value);
}

export interface Page {
  readonly chat: v6.AbstractChat<UIMessage>;
  /** Resolves when no answer is under way. */
  settled(this: void): Promise<void>;
}

/** Decides all approvals of a message at once, as pages do: the last one posts them. */
export function openPage(
  version: Version,
  { api, id, messages = [] }: { readonly api: string; readonly id: string; readonly messages?: UIMessage[] },
): Page {
  const sdk = versions[version];
  class PageChat extends sdk.AbstractChat<UIMessage> {}
  const chat = new PageChat({
    id,
    state: new PageState(messages),
    transport: new sdk.DefaultChatTransport({ api }),
    sendAutomaticallyWhen: sdk.lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  const settled = async (): Promise<void> => {
    do await new Promise((resolve) => setImmediate(resolve));
    while (chat.status === 'submitted' || chat.status === 'streaming');
  };
  return { chat, settled };
}

/** `text:Hello.` or `tool-refund:output-available` */
export function partsOf(message: UIMessage | undefined): readonly string[] {
  return (message?.parts ?? []).flatMap((part) => {
    if (part.type === 'step-start') return [];
    if (part.type === 'text') return [`text:${part.text}`];
    return [`${part.type}:${(part as { state?: string }).state ?? ''}`];
  });
}

export function approvalIdsIn(message: UIMessage | undefined): readonly string[] {
  return (message?.parts ?? []).flatMap((part) => {
    const { state, approval } = part as {
      readonly state?: string;
      readonly approval?: { readonly id: string };
    };
    return state === 'approval-requested' && approval !== undefined ? [approval.id] : [];
  });
}
