/** The events of a run → the chunks that a page makes a message of. */
import type { AgentEvent, AgentEventOf, ExecutionResult } from '@lousho/contract';
import { approvalData, isInner } from './transcript-ui.ts';
import type { UIChunk, UIMessage, UIPart, UIToolPart } from './ui-messages.ts';

type OpenPart = { readonly type: 'text' | 'reasoning'; readonly id: string };

/** One answer. Its parts get ids of their own: a page keeps those of an earlier request of the same message. */
export class AnswerChunks {
  #open: OpenPart | undefined;
  #heardText = false;
  /** The step that the run goes on with is on the page: begun again, its calls would be others. */
  #isInStep: boolean;
  readonly #shownCalls = new Set<string>();
  readonly #askedCalls = new Set<string>();

  /** @param shown what of the message there is already */
  constructor(
    readonly runId: string,
    shown: readonly UIPart[] = [],
  ) {
    for (const part of shown) {
      if (!('toolCallId' in part)) continue;
      this.#shownCalls.add(part.toolCallId);
      if (part.approval !== undefined) this.#askedCalls.add(part.toolCallId);
    }
    this.#isInStep = shown.some((part) => 'toolCallId' in part && isOpen(part));
  }

  of(event: AgentEvent): readonly UIChunk[] {
    // What sub-agents say is theirs; what they ask a person is for the page.
    if (event.subagentPath !== undefined && event.type !== 'approval.requested') return [];
    switch (event.type) {
      case 'step.start': {
        const begun: readonly UIChunk[] = this.#isInStep ? [] : [{ type: 'start-step' }];
        this.#isInStep = false;
        return begun;
      }
      case 'text.delta':
        this.#heardText = true;
        return this.#say('text', event.text, event.seq);
      case 'reasoning.delta':
        return this.#say('reasoning', event.text, event.seq);
      case 'text.done': {
        const said = this.#heardText ? [] : this.#say('text', event.text, event.seq);
        return [...said, ...this.#close()];
      }
      case 'provider.retry':
      case 'provider.fallback':
        // What was heard of the failed attempt stays; what comes now begins anew.
        this.#heardText = false;
        return this.#close();
      case 'tool.start':
        this.#shownCalls.add(event.toolCallId);
        return [...this.#close(), inputOf(event)];
      case 'tool.done':
        return [{ type: 'tool-output-available', toolCallId: event.toolCallId, output: event.result }];
      case 'tool.error':
        return [this.#failureOf(event)];
      case 'approval.requested':
        return [...this.#close(), ...this.#request(event)];
      case 'handoff':
        return [{ type: 'data-lousho-handoff', data: { from: event.from, to: event.to } }];
      case 'step.done':
        this.#heardText = false;
        return [...this.#close(), { type: 'finish-step' }];
      default:
        return [];
    }
  }

  #say(type: OpenPart['type'], delta: string, seq: number): readonly UIChunk[] {
    const begun: UIChunk[] = [];
    if (this.#open?.type !== type) {
      begun.push(...this.#close());
      this.#open = { type, id: `${this.runId}-${seq}` };
      begun.push({ type: `${type}-start`, id: this.#open.id });
    }
    return [...begun, { type: `${type}-delta`, id: this.#open.id, delta }];
  }

  #close(): readonly UIChunk[] {
    const open = this.#open;
    this.#open = undefined;
    return open === undefined ? [] : [{ type: `${open.type}-end`, id: open.id }];
  }

  #failureOf({ toolCallId, toolName, kind, error }: AgentEventOf<'tool.error'>): UIChunk {
    if (kind === 'rejected' || (kind === 'denied' && this.#askedCalls.has(toolCallId)))
      return { type: 'tool-output-denied', toolCallId };
    if (this.#shownCalls.has(toolCallId))
      return { type: 'tool-output-error', toolCallId, errorText: error.message };
    // It never began: no part of the page has it.
    return { type: 'tool-input-error', toolCallId, toolName, input: null, errorText: error.message };
  }

  #request(event: AgentEventOf<'approval.requested'>): readonly UIChunk[] {
    const { approvalId, toolCallId } = event;
    if (isInner(event)) return [{ type: 'data-lousho-approval', id: approvalId, data: approvalData(event) }];
    this.#shownCalls.add(toolCallId);
    this.#askedCalls.add(toolCallId);
    return [inputOf(event), { type: 'tool-approval-request', approvalId, toolCallId }];
  }
}

function isOpen({ state }: UIToolPart): boolean {
  return state === 'input-available' || state === 'approval-requested';
}

/** What ends the answer. */
export function endOf({ finishReason }: Pick<ExecutionResult, 'finishReason'>): UIChunk {
  switch (finishReason) {
    case 'aborted':
      return { type: 'abort' };
    case 'awaiting-approval':
      return { type: 'finish', finishReason: 'tool-calls' };
    case 'stop':
    case 'length':
    case 'content-filter':
      return { type: 'finish', finishReason };
    default:
      return { type: 'finish', finishReason: 'other' };
  }
}

/** A message, or what there is of it, said again to a page that has nothing of it. */
export function chunksOf({ id, parts }: UIMessage): readonly UIChunk[] {
  return parts.flatMap((part, index) => partChunks(part, `${id}-${index}`, index > 0));
}

export function partChunks(part: UIPart, id: string, isBehindAStep: boolean): readonly UIChunk[] {
  switch (part.type) {
    case 'step-start':
      return isBehindAStep ? [{ type: 'finish-step' }, { type: 'start-step' }] : [{ type: 'start-step' }];
    case 'text':
    case 'reasoning':
      return [
        { type: `${part.type}-start`, id },
        { type: `${part.type}-delta`, id, delta: part.text },
        { type: `${part.type}-end`, id },
      ];
    case 'file':
      return [{ type: 'file', url: part.url, mediaType: part.mediaType }];
    case 'data-lousho-approval':
      return [part];
    default:
      return toolChunks(part);
  }
}

function toolChunks(part: UIToolPart): readonly UIChunk[] {
  const { toolCallId, input, state, approval, providerExecuted } = part;
  const asked: readonly UIChunk[] =
    approval === undefined ? [] : [{ type: 'tool-approval-request', approvalId: approval.id, toolCallId }];
  const begun: readonly UIChunk[] = [
    {
      ...inputOf({ toolCallId, toolName: part.type.slice('tool-'.length), args: input }),
      ...(providerExecuted === undefined ? undefined : { providerExecuted }),
    },
    ...asked,
  ];
  switch (state) {
    case 'output-available':
      return [...begun, { type: 'tool-output-available', toolCallId, output: part.output ?? null }];
    case 'output-error':
      return [...begun, { type: 'tool-output-error', toolCallId, errorText: part.errorText ?? '' }];
    case 'output-denied':
      return [...begun, { type: 'tool-output-denied', toolCallId }];
    default:
      return begun;
  }
}

function inputOf({
  toolCallId,
  toolName,
  args,
}: Pick<AgentEventOf<'tool.start'>, 'toolCallId' | 'toolName' | 'args'>): UIChunk {
  return { type: 'tool-input-available', toolCallId, toolName, input: args };
}
