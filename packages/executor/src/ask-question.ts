/** Questions: of the model, by the call `ask_question`, which is never run and whose result is the answer; and of a tool that waits for one. */
import {
  SDKError,
  defineTool,
  type ApprovalDecision,
  type ApprovalQuestion,
  type CheckpointApproval,
  type JsonValue,
  type Tool,
  type ToolAnswer,
  type ToolCallPart,
  type ToolResultPart,
} from '@lousho/contract';
import { z } from 'zod';
import { valueResult } from './tool-result.ts';

const NAME = 'ask_question';
const tools = new WeakSet<Tool>();

export function askQuestionTool(): Tool {
  const tool = defineTool({
    name: NAME,
    description: 'Asks the user a question and waits for the answer, which may take days.',
    input: z.strictObject({
      question: z.string().min(1),
      options: z.array(z.string().min(1)).min(1).optional().describe('Answers to choose from.'),
      allowFreeText: z
        .boolean()
        .optional()
        .describe('Whether other answers than the options count. Default true.'),
    }),
    needsApproval: true,
    execute: () => {
      throw new Error(`Invariant: ${NAME} was run`);
    },
  });
  tools.add(tool);
  return tool;
}

/** Only ours: an application may call a tool of its own `ask_question`. */
export function isQuestionTool(tool: Tool): boolean {
  return tools.has(tool);
}

/** What is asked: by the tool, or by the arguments of the call, which then fit `ask_question`. */
export function questionOf({ question: asked }: CheckpointApproval, args: JsonValue): ApprovalQuestion {
  if (asked !== undefined) return asked;
  const { question, options, allowFreeText } = args as {
    readonly question: string;
    readonly options?: readonly string[];
    readonly allowFreeText?: boolean;
  };
  return {
    text: question,
    ...(options === undefined ? undefined : { options }),
    ...(allowFreeText === undefined ? undefined : { allowFreeText }),
  };
}

/** @throws LOUSHO_TOOL_ARGS_INVALID naming what is wrong with the answer; the question stays open */
export function requireAnswer(
  given: Pick<ApprovalDecision, 'answer' | 'args'>,
  approval: CheckpointApproval,
  { toolName, args }: { readonly toolName: string; readonly args: JsonValue },
): void {
  const { options, allowFreeText = true } = questionOf(approval, args);
  const refuse = (path: string, message: string): never => {
    throw new SDKError('LOUSHO_TOOL_ARGS_INVALID', {
      toolName,
      approvalId: approval.id,
      issues: [{ path, message }],
    });
  };
  if (given.args !== undefined) refuse('args', 'A question is answered, not changed.');
  if (given.answer === undefined || given.answer.trim() === '')
    refuse('answer', 'The question needs an answer.');
  if (options !== undefined && !allowFreeText && optionOf(options, given.answer ?? '') < 0)
    refuse('answer', `The answer must be one of: ${options.join(', ')}.`);
}

/** The answer to `ask_question`. */
export function answerResult(
  call: ToolCallPart,
  args: JsonValue,
  approval: CheckpointApproval,
): ToolResultPart {
  const { answer = '' } = approval.decision ?? {};
  return valueResult(call, { answer, ...optionFields(questionOf(approval, args), answer) });
}

/** The answer to what a tool asked. */
export function toolAnswer({ question, state = null, decision }: CheckpointApproval): ToolAnswer | undefined {
  if (question === undefined || decision === undefined) return undefined;
  const { answer: text = '', by } = decision;
  return { text, ...optionFields(question, text), state, ...(by === undefined ? undefined : { by }) };
}

/** `option` is its number from 0, when the answer is one of them in any case. */
function optionFields({ options = [] }: ApprovalQuestion, answer: string): { readonly option?: number } {
  const option = optionOf(options, answer);
  return option < 0 ? {} : { option };
}

function optionOf(options: readonly string[], answer: string): number {
  const wanted = answer.trim().toLowerCase();
  return options.findIndex((option) => option.trim().toLowerCase() === wanted);
}
