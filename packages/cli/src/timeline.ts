/** A transcript as lines: what was said, each step, its calls and what came back. */
import {
  ownCalls,
  resultOf,
  type AssistantMessage,
  type AssistantPart,
  type Checkpoint,
  type JsonValue,
  type Message,
  type ToolCallPart,
  type ToolResultPart,
  type UserPart,
} from '@lousho/contract';
import { accent, bad, dim, good, strong, warn, type Line, type Piece } from './terminal/styled-line.ts';
import { size } from './terminal/words.ts';
import { wrap } from './terminal/visible-text.ts';

export interface TimelineOptions {
  /** Whole values on as many lines as they need, instead of one line each. */
  readonly full: boolean;
  /** Of a line, for `full`. */
  readonly width: number;
  /** Beside the title of a step, for example when it was saved. */
  readonly stepNote?: ((step: number) => string | undefined) | undefined;
}

/** Lines of one message or step: what stands together. */
export interface TimelineEntry {
  /** Number of the step; `undefined` for input. */
  readonly step: number | undefined;
  readonly lines: readonly Line[];
}

type Transcript = Pick<Checkpoint, 'messages' | 'stepIndex'> &
  Partial<Pick<Checkpoint, 'settledResults' | 'approvals' | 'startedToolCallIds'>>;

/** From message `start` on. */
export function timeline(state: Transcript, start: number, options: TimelineOptions): TimelineEntry[] {
  const messages = state.messages.slice(start);
  let step = state.stepIndex - messages.filter(({ role }) => role === 'assistant').length;
  return messages.flatMap((message, index): TimelineEntry[] => {
    switch (message.role) {
      case 'system':
      case 'tool':
        return [];
      case 'user':
        return [{ step: undefined, lines: inputLines(message, options) }];
      case 'assistant': {
        step += 1;
        const results = resultsBehind(messages, index);
        const isLast = step === state.stepIndex;
        const settled = isLast ? (state.settledResults ?? []) : [];
        const open = isLast ? state : undefined;
        return [{ step, lines: stepLines(step, message, [...results, ...settled], open, options) }];
      }
    }
  });
}

/** A value as indented JSON, one line each; a text as it is. */
export function valueLines(value: JsonValue, indent: string, width: number): readonly Line[] {
  const text = typeof value === 'string' ? value : JSON.stringify(value, undefined, 2);
  return text.split('\n').flatMap((line) => wrap(line, width - indent.length).map((part) => [indent, part]));
}

function stepLines(
  step: number,
  message: AssistantMessage,
  results: readonly ToolResultPart[],
  open: Transcript | undefined,
  options: TimelineOptions,
): Line[] {
  const note = options.stepNote?.(step);
  // Steps of earlier runs in the conversation are not counted by this one.
  const name = step >= 1 ? `step ${step}` : 'earlier step';
  const title: Line = [strong(name), dim(note === undefined ? '' : `  ${note}`)];
  const left = [...results];
  return [
    title,
    ...message.content.flatMap((part): readonly Line[] => {
      if (part.type !== 'tool-call') return partLines(part, options);
      const at = left.findIndex(({ toolCallId }) => toolCallId === part.toolCallId);
      const [result] = at === -1 ? [] : left.splice(at, 1);
      return callLines(part, result, open, options);
    }),
  ];
}

function callLines(
  call: ToolCallPart,
  result: ToolResultPart | undefined,
  open: Transcript | undefined,
  options: TimelineOptions,
): readonly Line[] {
  const lines = labelled([accent('→ '), strong(call.toolName), ' '], call.args, options);
  if (result !== undefined) return [...lines, ...resultLines(result, options)];
  return call.providerExecuted === true || open === undefined ? lines : [...lines, openLine(call, open)];
}

function resultLines(result: ToolResultPart, options: TimelineOptions): readonly Line[] {
  const { approval } = result;
  const decided: Line[] =
    approval === undefined
      ? []
      : [
          dim(
            `  ${approval.approved ? 'approved' : 'rejected'} by ${approval.by ?? approval.source ?? 'a person'}` +
              ` ${approval.decidedAt}${approval.note === undefined ? '' : `: ${approval.note}`}`,
          ),
        ];
  const mark = result.isError === true ? bad(`✗ ${result.kind ?? 'error'} `) : good('← ');
  return [...decided, ...labelled([mark], result.result, options)];
}

function openLine(call: ToolCallPart, { approvals = [], startedToolCallIds = [] }: Transcript): Line {
  const approval = approvals.find(({ toolCallId }) => toolCallId === call.toolCallId);
  if (approval?.decision !== undefined)
    return ['  ', warn(approval.decision.approved ? '… approved, has no result yet' : '… rejected')];
  if (approval !== undefined) return ['  ', warn('◆ waits for a person')];
  return ['  ', warn(startedToolCallIds.includes(call.toolCallId) ? '… had started' : '… has no result yet')];
}

function inputLines(message: Extract<Message, { role: 'user' }>, options: TimelineOptions): Line[] {
  const parts: readonly UserPart[] =
    typeof message.content === 'string' ? [{ type: 'text', text: message.content }] : message.content;
  const lines = parts.flatMap((part) => partLines(part, options));
  return [strong('input'), ...lines];
}

/** Long answers are read where they were given; here they remind. */
const MAX_TEXT_LINES = 12;

function partLines(part: Exclude<AssistantPart, ToolCallPart>, options: TimelineOptions): readonly Line[] {
  switch (part.type) {
    case 'text':
      return textLines(part.text, options);
    case 'reasoning':
      return part.text === '' ? [] : textLines(part.text, options).map((line) => dim(textOf(line)));
    case 'file':
      return [dim(`  [file ${[part.mediaType, part.filename].filter(Boolean).join(' ')}${fileSize(part)}]`)];
    case 'tool-result':
      return resultLines(part, options);
    case 'custom':
      return [dim(`  [${part.kind}]`)];
  }
}

function textLines(text: string, { full, width }: TimelineOptions): readonly Line[] {
  const lines = text.trimEnd().split('\n');
  if (full) return lines.flatMap((line) => wrap(line, width - 2).map((part) => ['  ', part]));
  const shown: Line[] = lines.slice(0, MAX_TEXT_LINES).map((line) => ['  ', line]);
  const more = lines.length - shown.length;
  return more === 0 ? shown : [...shown, dim(`  … ${more} more lines`)];
}

function labelled(
  label: readonly Piece[],
  value: JsonValue,
  { full, width }: TimelineOptions,
): readonly Line[] {
  if (!full) return [['  ', ...label, typeof value === 'string' ? value : JSON.stringify(value)]];
  return [['  ', ...label], ...valueLines(value, '      ', width)];
}

function resultsBehind(messages: readonly Message[], index: number): ToolResultPart[] {
  const message = messages[index];
  const calls = message?.role === 'assistant' ? ownCalls(message).length : 0;
  return messages.slice(index + 1, index + 1 + calls).flatMap((next) => resultOf(next) ?? []);
}

function fileSize({ data }: Extract<UserPart, { type: 'file' }>): string {
  // Four characters of base64 are three bytes.
  return data.type === 'data' ? ` ${size(Math.floor((data.data.length * 3) / 4))}` : '';
}

function textOf(line: Line): string {
  const pieces = Array.isArray(line) ? (line as readonly Piece[]) : [line as Piece];
  return pieces.map((piece) => (typeof piece === 'string' ? piece : piece.text)).join('');
}
