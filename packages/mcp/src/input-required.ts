/** What a tool asks of the user in the middle of a call → one question for a person after the other; the answers → what the server gets. */
import type { ApprovalQuestion, JsonObject, JsonValue, ToolAnswer } from '@lousho/contract';
import { fieldQuestion, readField, type FormField } from './form-field.ts';

/** One thing to ask for: a field of a form, or that something was done. */
interface Step {
  /** The server's name of the request that it belongs to. */
  readonly key: string;
  readonly message: string;
  /** Absent: there is nothing to fill in. */
  readonly field?: FormField;
  /** Absent for a form. */
  readonly url?: string;
}
/** Where the conversation with the person is. Stored with the run while it waits. */
interface Waiting {
  readonly steps: readonly Step[];
  /** What the steps before have given; `null` for what was left out. */
  readonly values: readonly JsonValue[];
  readonly requestState?: string;
}

export type NextInput =
  | { readonly type: 'ask'; readonly question: ApprovalQuestion; readonly state: JsonValue }
  /** Call again, with this. */
  | { readonly type: 'send'; readonly input: InputParams };
export interface InputParams {
  readonly inputResponses: Record<string, unknown>;
  readonly requestState?: string;
}

/** `undefined`: it asks for what a person cannot give here. */
export function firstInput(asked: Record<string, unknown>): NextInput | undefined {
  const { inputRequests, requestState } = asked;
  const steps: Step[] = [];
  for (const [key, request] of Object.entries(objectOf(inputRequests))) {
    const found = stepsOf(key, objectOf(request));
    if (found === undefined) return undefined;
    steps.push(...found);
  }
  if (steps.length === 0) return undefined;
  const state = typeof requestState === 'string' ? { requestState } : undefined;
  return next({ steps, values: [], ...state });
}

/** A person has answered what was asked last. */
export function nextInput({ text, state }: ToolAnswer): NextInput {
  const waiting = state as unknown as Waiting;
  const step = waiting.steps[waiting.values.length];
  const read = step?.field === undefined ? { ok: true as const, value: null } : readField(step.field, text);
  if (!read.ok) return next(waiting, `${read.problem} `);
  return next({ ...waiting, values: [...waiting.values, read.value] });
}

function next(waiting: Waiting, before = ''): NextInput {
  const step = waiting.steps[waiting.values.length];
  if (step === undefined) return { type: 'send', input: inputOf(waiting) };
  const { text, ...choice } = questionOf(step);
  return {
    type: 'ask',
    question: { text: `${before}${text}`, ...choice },
    state: waiting as unknown as JsonValue,
  };
}

function questionOf({ message, url, field }: Step): ApprovalQuestion {
  if (field !== undefined) return fieldQuestion(message, field);
  return url === undefined
    ? { text: message, options: ['yes'], allowFreeText: false }
    : { text: `${message}\nOpen ${url}, then come back.`, options: ['done'], allowFreeText: false };
}

function stepsOf(key: string, { method, params }: Record<string, unknown>): readonly Step[] | undefined {
  // Others ask for a model or for folders of the client, which is no matter of a person.
  if (method !== 'elicitation/create') return undefined;
  const { message, url, requestedSchema } = objectOf(params);
  const about = { key, message: typeof message === 'string' ? message : '' };
  if (typeof url === 'string') return [{ ...about, url }];
  const { properties, required } = objectOf(requestedSchema);
  const fields = Object.entries(objectOf(properties)).map(([name, schema]) => ({
    name,
    schema: objectOf(schema) as JsonObject,
    isRequired: Array.isArray(required) && required.includes(name),
  }));
  return fields.length === 0 ? [about] : fields.map((field) => ({ ...about, field }));
}

function inputOf({ steps, values, requestState }: Waiting): InputParams {
  const contents = new Map<string, Map<string, JsonValue>>();
  const hasForm = new Set<string>();
  for (const [index, { key, field, url }] of steps.entries()) {
    const content = contents.get(key) ?? new Map<string, JsonValue>();
    contents.set(key, content);
    if (url === undefined) hasForm.add(key);
    const value = values[index] ?? null;
    if (field !== undefined && value !== null) content.set(field.name, value);
  }
  const responses = [...contents].map(([key, content]): [string, object] => [
    key,
    { action: 'accept', ...(hasForm.has(key) ? { content: Object.fromEntries(content) } : undefined) },
  ]);
  return {
    inputResponses: Object.fromEntries(responses),
    ...(requestState === undefined ? undefined : { requestState }),
  };
}

function objectOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
