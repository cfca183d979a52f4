/** What a tool returns when it cannot go on without a person: the call waits, for days if need be, and then runs again with the answer. */
import type { ApprovalQuestion } from './approval.ts';
import { ConfigurationError } from './errors.ts';
import { deepFreeze } from './freeze.ts';
import { toJson, type JsonValue } from './json.ts';

/** Under the same symbol in every installed copy. */
const BRAND = Symbol.for('lousho.question');

/** Made by `askPerson`, returned in place of a result. */
export interface PersonQuestion {
  readonly question: ApprovalQuestion;
  readonly state: JsonValue;
}

/** It is stored with every save of the run until the call has its result. */
const MAX_STATE_BYTES = 65_536;

/**
 * `return askPerson({ text: 'Which account?' }, state)` in `execute`: the run pauses with an approval of kind `question`. When a person has
 * answered, in whatever process, `execute` runs again with the same arguments and `ctx.answer`, which also holds `state`: what the
 * tool needs to go on, at most 64 KB of JSON. It may ask again. When the person declines, the call is `rejected` and does not go on.
 *
 * A tool that is not `onInterrupted: 'retry'` gets an answer at most once (G7): a crash after that is an `interrupted` result.
 *
 * @throws synchronously LOUSHO_CONFIG_INVALID
 */
export function askPerson(question: ApprovalQuestion, state: JsonValue = null): PersonQuestion {
  const { text, options, allowFreeText } = question;
  if (typeof text !== 'string' || text.trim() === '') refuse('question.text', text, 'a text');
  if (options !== undefined && (options.length === 0 || !options.every(isText)))
    refuse('question.options', options, 'a list of texts, or absent');
  if (options === undefined && allowFreeText === false)
    refuse('question.allowFreeText', allowFreeText, 'true where there are no options');
  const converted = toJson(state);
  if (!converted.ok) refuse('state', state, 'JSON');
  const bytes = new TextEncoder().encode(JSON.stringify(converted.json)).length;
  if (bytes > MAX_STATE_BYTES) refuse('state', bytes, `at most ${MAX_STATE_BYTES} bytes`);
  const asked: ApprovalQuestion = {
    text,
    ...(options === undefined ? undefined : { options: [...options] }),
    ...(allowFreeText === undefined ? undefined : { allowFreeText }),
  };
  return deepFreeze(
    Object.defineProperty({ question: asked, state: converted.json }, BRAND, { value: true }),
  );
}

export function isPersonQuestion(value: unknown): value is PersonQuestion {
  return typeof value === 'object' && value !== null && BRAND in value;
}

function isText(option: unknown): boolean {
  return typeof option === 'string' && option.trim() !== '';
}

function refuse(option: string, got: unknown, want: string): never {
  throw new ConfigurationError('LOUSHO_CONFIG_INVALID', { option, got, want });
}
