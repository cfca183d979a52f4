/** One message: its text, and its tool calls with what they are asked, what they gave, and what waits for a person. */
import { getToolName, isToolUIPart, type ToolUIPart, type DynamicToolUIPart, type UIMessage } from 'ai';
import { useState } from 'react';

export interface Decision {
  readonly id: string;
  readonly approved: boolean;
  readonly reason?: string;
}
type OnDecide = (decision: Decision) => void;
type ToolPart = ToolUIPart | DynamicToolUIPart;

export function Message({ message, onDecide }: { readonly message: UIMessage; readonly onDecide: OnDecide }) {
  return (
    <article className={message.role} aria-label={message.role}>
      {message.parts.map((part, index) => {
        if (part.type === 'text') return <p key={index}>{part.text}</p>;
        if (part.type === 'reasoning')
          return (
            <details key={index}>
              <summary>Thoughts</summary>
              <p>{part.text}</p>
            </details>
          );
        return isToolUIPart(part) ? <ToolCall key={part.toolCallId} part={part} onDecide={onDecide} /> : null;
      })}
    </article>
  );
}

const words: Readonly<Record<ToolPart['state'], string>> = {
  'input-streaming': 'writing',
  'input-available': 'running',
  'approval-requested': 'waits for you',
  'approval-responded': 'decided',
  'output-available': 'done',
  'output-error': 'failed',
  'output-denied': 'rejected',
};

function ToolCall({ part, onDecide }: { readonly part: ToolPart; readonly onDecide: OnDecide }) {
  const reason = 'approval' in part ? part.approval?.reason : undefined;
  return (
    <section className={`call ${part.state}`} aria-label={getToolName(part)}>
      <h2>
        <code>{getToolName(part)}</code>
        <span className="state">{words[part.state]}</span>
      </h2>
      <Fields of={part.input} />
      {part.state === 'output-available' && <Fields of={part.output} />}
      {part.state === 'output-error' && <p className="error">{part.errorText}</p>}
      {reason !== undefined && <p className="reason">“{reason}”</p>}
      {part.state === 'approval-requested' && <Buttons id={part.approval.id} onDecide={onDecide} />}
    </section>
  );
}

function Fields({ of: value }: { readonly of: unknown }) {
  if (typeof value !== 'object' || value === null) return <p>{String(value ?? '')}</p>;
  return (
    <dl>
      {Object.entries(value).map(([name, one]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{typeof one === 'string' ? one : JSON.stringify(one)}</dd>
        </div>
      ))}
    </dl>
  );
}

function Buttons({ id, onDecide }: { readonly id: string; readonly onDecide: OnDecide }) {
  const [reason, setReason] = useState('');
  const decide = (approved: boolean): void =>
    onDecide({ id, approved, ...(reason === '' ? undefined : { reason }) });
  return (
    <div className="buttons">
      <input
        aria-label="Reason"
        placeholder="Why, if you like"
        value={reason}
        onChange={({ target }) => setReason(target.value)}
      />
      <button onClick={() => decide(false)}>Reject</button>
      <button className="primary" onClick={() => decide(true)}>
        Approve
      </button>
    </div>
  );
}
