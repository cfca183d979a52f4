/** Two runs side by side: where they part, and in what. Pure. */
import {
  canonicalJson,
  ownCalls,
  resultOf,
  textOf,
  type Checkpoint,
  type FinishReason,
  type Message,
  type ToolCallRecord,
  type ToolResultPart,
} from '@lousho/contract';

/** A model response: its words, and its calls with what became of them. */
export interface TrajectoryStep {
  readonly text: string;
  readonly toolCalls: readonly ToolCallRecord[];
}
/** `tools`: names joined by ` > `. `args`: one call's name and canonical arguments; only when the tools are equal. */
export type TrajectoryDrift =
  | { readonly field: 'tools' | 'args'; readonly committed: string; readonly current: string }
  | { readonly field: 'steps'; readonly committed: number; readonly current: number }
  | { readonly field: 'finishReason'; readonly committed: FinishReason; readonly current: FinishReason };
export interface TrajectoryComparison {
  readonly a: readonly TrajectoryStep[];
  readonly b: readonly TrajectoryStep[];
  /** 1-based; `undefined` when equal, call ids aside. */
  readonly divergedAt: number | undefined;
  /** Empty when equal. `committed` is of `a`, `current` of `b`. */
  readonly drift: readonly TrajectoryDrift[];
}

/** Two checkpoints or two transcripts; one of each is fine. */
export function compareTrajectories(
  a: Checkpoint | readonly Message[],
  b: Checkpoint | readonly Message[],
): TrajectoryComparison {
  const [stepsA, stepsB] = [trajectoryOf(a), trajectoryOf(b)];
  return {
    a: stepsA,
    b: stepsB,
    divergedAt: firstDifference(stepsA, stepsB),
    drift: [
      ...callDrift(stepsA, stepsB),
      ...(stepsA.length === stepsB.length
        ? []
        : [{ field: 'steps' as const, committed: stepsA.length, current: stepsB.length }]),
      ...endDrift(finishReasonOf(a), finishReasonOf(b)),
    ],
  };
}

/* ── Steps ── */

function trajectoryOf(run: Checkpoint | readonly Message[]): readonly TrajectoryStep[] {
  const { messages, settledResults } = isTranscript(run) ? { messages: run, settledResults: [] } : run;
  const steps: TrajectoryStep[] = [];
  messages.forEach((message, index) => {
    if (message.role !== 'assistant') return;
    const calls = ownCalls(message);
    const results = resultsBehind(messages, index);
    // Of the last step some results may be settled and not in the transcript yet.
    const isLast = index + results.length + 1 === messages.length;
    steps.push({
      text: textOf(message),
      toolCalls: calls.map((call, position) => {
        const early = isLast
          ? settledResults.find(({ toolCallId }) => toolCallId === call.toolCallId)
          : undefined;
        return callRecord(call, results[position] ?? early);
      }),
    });
  });
  return steps;
}

function resultsBehind(messages: readonly Message[], index: number): readonly ToolResultPart[] {
  const results: ToolResultPart[] = [];
  for (let next = index + 1; ; next += 1) {
    const message = messages[next];
    const result = message === undefined ? undefined : resultOf(message);
    if (result === undefined) return results;
    results.push(result);
  }
}

function callRecord(
  { toolCallId, toolName, args }: Pick<ToolCallRecord, 'toolCallId' | 'toolName' | 'args'>,
  result: ToolResultPart | undefined,
): ToolCallRecord {
  return {
    toolCallId,
    toolName,
    args,
    ...(result === undefined ? undefined : { result: result.result }),
    ...(result?.isError === undefined ? undefined : { isError: result.isError }),
    ...(result?.kind === undefined ? undefined : { kind: result.kind }),
  };
}

/** The first step that differs, from 1. When one run is the beginning of the other: the first step that it lacks. */
function firstDifference(a: readonly TrajectoryStep[], b: readonly TrajectoryStep[]): number | undefined {
  const most = Math.max(a.length, b.length);
  for (let index = 0; index < most; index += 1)
    if (fingerprintOf(a[index]) !== fingerprintOf(b[index])) return index + 1;
  return undefined;
}

function fingerprintOf(step: TrajectoryStep | undefined): string | undefined {
  if (step === undefined) return undefined;
  const toolCalls = step.toolCalls.map(({ toolCallId: _id, ...call }) => call);
  return canonicalJson({ text: step.text, toolCalls });
}

/* ── Drift ── */

function callDrift(a: readonly TrajectoryStep[], b: readonly TrajectoryStep[]): readonly TrajectoryDrift[] {
  const [callsA, callsB] = [a, b].map((steps) => steps.flatMap(({ toolCalls }) => toolCalls)) as [
    ToolCallRecord[],
    ToolCallRecord[],
  ];
  const tools = (calls: readonly ToolCallRecord[]): string =>
    calls.map(({ toolName }) => toolName).join(' > ');
  const [committed, current] = [tools(callsA), tools(callsB)];
  if (committed !== current) return [{ field: 'tools', committed, current }];
  const shown = ({ toolName, args }: ToolCallRecord): string => `${toolName} ${canonicalJson(args)}`;
  return callsA.flatMap((call, index) => {
    const other = callsB[index];
    const args = { committed: shown(call), current: other === undefined ? '' : shown(other) };
    return args.committed === args.current ? [] : [{ field: 'args' as const, ...args }];
  });
}

function endDrift(committed: FinishReason | undefined, current: FinishReason | undefined): TrajectoryDrift[] {
  // A run that is not over, or a transcript alone, has no end to compare.
  if (committed === undefined || current === undefined || committed === current) return [];
  return [{ field: 'finishReason', committed, current }];
}

function finishReasonOf(run: Checkpoint | readonly Message[]): FinishReason | undefined {
  if (isTranscript(run)) return undefined;
  return run.status === 'awaiting-approval' ? 'awaiting-approval' : run.finishReason;
}

function isTranscript(run: Checkpoint | readonly Message[]): run is readonly Message[] {
  return Array.isArray(run);
}
