/** The page: the conversation, what waits for a decision, and a line to write in. */
import { useChat } from '@ai-sdk/react';
import { useEffect, useRef, useState, useSyncExternalStore, type FormEvent } from 'react';
import type { DurableChat } from './durable-chat.ts';
import { Message } from './message.tsx';

const examples = ['Where is order 8?', 'Please refund order 7.'];

export function ChatPage({ chat: durable }: { readonly chat: DurableChat }) {
  const { messages, status, sendMessage, addToolApprovalResponse } = useChat({ chat: durable.chat });
  const notice = useSyncExternalStore(durable.subscribe, () => durable.notice);
  const isAnswering = status === 'submitted' || status === 'streaming';
  const say = (text: string): void => void sendMessage({ text });
  useEffect(() => {
    if (status === 'streaming') durable.tellOtherTabs();
  }, [durable, status]);
  const end = useRef<HTMLDivElement>(null);
  useEffect(() => {
    void end.current?.scrollIntoView({ block: 'end' });
  }, [messages, notice]);

  return (
    <>
      <header>
        <h1>Support desk</h1>
        <a href="/">New chat</a>
      </header>
      <main aria-live="polite" aria-busy={isAnswering}>
        {messages.length === 0 && (
          <div className="welcome">
            <p>What can I do for you?</p>
            {examples.map((text) => (
              <button key={text} onClick={() => say(text)}>
                {text}
              </button>
            ))}
          </div>
        )}
        {messages.map((message) => (
          <Message
            key={message.id}
            message={message}
            onDecide={(decision) => void addToolApprovalResponse(decision)}
          />
        ))}
        {status === 'submitted' && <p className="thinking">…</p>}
        {notice !== undefined && (
          <p className="notice" role="status">
            {notice}
          </p>
        )}
        <div ref={end} />
      </main>
      <Composer isAnswering={isAnswering} onSay={say} onStop={() => void durable.stop()} />
    </>
  );
}

interface ComposerProps {
  readonly isAnswering: boolean;
  readonly onSay: (text: string) => void;
  readonly onStop: () => void;
}

function Composer({ isAnswering, onSay, onStop }: ComposerProps) {
  const [text, setText] = useState('');
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (isAnswering || text.trim() === '') return;
    onSay(text);
    setText('');
  };
  return (
    <form onSubmit={submit}>
      <input
        aria-label="Message"
        autoFocus
        placeholder="Ask about order 7 or 8"
        value={text}
        onChange={({ target }) => setText(target.value)}
      />
      {isAnswering ? (
        <button type="button" onClick={onStop}>
          Stop
        </button>
      ) : (
        <button type="submit" className="primary">
          Send
        </button>
      )}
    </form>
  );
}
