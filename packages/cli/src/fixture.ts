/** One stored run as a fixture for tests: what went in, what the model answered, and the whole run to compare with. Pure. */
import {
  ownCalls,
  textOf,
  type Checkpoint,
  type JsonValue,
  type Message,
  type ReasoningPart,
} from '@lousho/contract';

export const FIXTURE_FORMAT = 1;

/** A response as `mockModel` of `@lousho/testing` takes it. */
interface ScriptedResponse {
  readonly text?: string;
  readonly reasoning?: string;
  readonly toolCalls?: readonly { readonly name: string; readonly args: JsonValue; readonly id: string }[];
}
export interface Fixture {
  readonly lousho: 'fixture';
  readonly format: typeof FIXTURE_FORMAT;
  /** Of the run, or of the session. */
  readonly id: string;
  /** What the run began with. */
  readonly input: readonly Message[];
  /** The responses of this run, in their order. */
  readonly script: readonly ScriptedResponse[];
  /** What `compareTrajectories` takes: the checkpoint, or the transcript of a session. */
  readonly run: Checkpoint | readonly Message[];
}

/** @param runInput where in the transcript the input of the run is */
export function fixtureOf(
  id: string,
  run: Checkpoint | readonly Message[],
  runInput: { readonly start: number; readonly count: number },
): Fixture {
  const messages: readonly Message[] = 'messages' in run ? run.messages : run;
  const behind = messages.slice(runInput.start + runInput.count);
  return {
    lousho: 'fixture',
    format: FIXTURE_FORMAT,
    id,
    input: messages.slice(runInput.start, runInput.start + runInput.count),
    script: behind.flatMap((message) => (message.role === 'assistant' ? [scripted(message)] : [])),
    run,
  };
}

function scripted(message: Extract<Message, { role: 'assistant' }>): ScriptedResponse {
  const text = textOf(message);
  const reasoning = message.content
    .filter((part): part is ReasoningPart => part.type === 'reasoning')
    .map((part) => part.text)
    .join('');
  const toolCalls = ownCalls(message).map(({ toolName: name, args, toolCallId: id }) => ({ name, args, id }));
  return {
    ...(reasoning === '' ? undefined : { reasoning }),
    ...(text === '' ? undefined : { text }),
    ...(toolCalls.length === 0 ? undefined : { toolCalls }),
  };
}
