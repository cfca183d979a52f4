/** `lousho show`: a run as a page that a person reads from top to bottom, and at its end what to do. Decides by what it is given. */
import type { Checkpoint, ModelUsage, RunUsage, SessionRecord } from '@lousho/contract';
import { holderName, type JudgedLease } from './leases.ts';
import { stateOf, statePiece, type RunState } from './run-state.ts';
import { valueLines, type TimelineEntry } from './timeline.ts';
import { accent, bad, dim, strong, warn, whole, type Line, type Piece } from './terminal/styled-line.ts';
import { ago, count, thousands } from './terminal/words.ts';
import type { WaitingApproval } from './waiting-approvals.ts';

export interface RunReport {
  readonly id: string;
  readonly checkpointId: string;
  readonly checkpoint: Checkpoint;
  readonly session: SessionRecord | undefined;
  /** `null`: free. `undefined`: the store does not tell. */
  readonly lease: JudgedLease | null | undefined;
  readonly approvals: readonly WaitingApproval[];
  readonly entries: readonly TimelineEntry[];
  /** Messages of the conversation before this run, and steps of the run that are not shown. */
  readonly before: { readonly messages: number; readonly steps: number };
  readonly nowMs: number;
  readonly width: number;
  /** Makes a command to copy. */
  readonly command: (...words: string[]) => string;
}

export function runStateOf({ checkpoint, lease }: Pick<RunReport, 'checkpoint' | 'lease'>): RunState {
  const isHeld = lease === undefined ? undefined : lease !== null && lease.state !== 'stale';
  return stateOf({ header: { ...checkpoint, messageCount: checkpoint.messages.length } }, isHeld);
}

export function reportLines(report: RunReport): Line[] {
  const state = runStateOf(report);
  return [
    [strong(report.id), '  ', statePiece(state)],
    ...factLines(report, state),
    '',
    ...beforeLines(report),
    ...report.entries.flatMap(({ lines }) => [...lines, '']),
    ...heldInputLines(report.checkpoint),
    ...errorLines(report),
    ...approvalLines(report),
    ...nextLines(report, state),
  ];
}

/* ── The head ── */

function factLines(report: RunReport, state: RunState): Line[] {
  const { checkpoint, session, nowMs, id, checkpointId } = report;
  const { agentName, activeAgent, stepIndex, usage, principal, forkedFrom, backgroundTasks } = checkpoint;
  const facts: [string, Line | undefined][] = [
    ['agent', activeAgent === undefined ? agentName : `${activeAgent} (handed over by ${agentName})`],
    ['saved', [ago(checkpoint.savedAt, nowMs), dim(`  ${checkpoint.savedAt}`)]],
    ['steps', `${count(stepIndex, 'step')}, ${count(checkpoint.messages.length, 'message')}`],
    ['usage', usageText(usage)],
    ['for', principal?.id],
    ['turn', session === undefined ? undefined : `${session.turn + 1} of the session`],
    ['forked', forkedFrom && `from ${forkedFrom.sessionId}, step ${forkedFrom.step}`],
    ['stored as', checkpointId === id ? undefined : dim(checkpointId)],
    ['tasks', backgroundTasks?.map(({ taskId, agent, status }) => `${taskId} ${agent} ${status}`).join(', ')],
    ['attempts', attemptsOf(checkpoint)],
    ['lease', state === 'finished' ? undefined : leaseLine(report)],
    ['ended', checkpoint.status === 'finished' ? endText(checkpoint) : undefined],
  ];
  return facts.flatMap(([name, line]): Line[] =>
    line === undefined ? [] : [[dim(`  ${name.padEnd(10)}`), ...[line].flat()]],
  );
}

export function usageText(usage: RunUsage): string {
  const { inputTokens, outputTokens, cachedInputTokens, modelCalls, costUsd, estimated, delegated } = usage;
  const cached = cachedInputTokens > 0 ? ` (${thousands(cachedInputTokens)} cached)` : '';
  const parts = [
    count(modelCalls, 'model call'),
    `${estimated === true ? '~' : ''}${thousands(inputTokens)} tokens in${cached}, ${thousands(outputTokens)} out`,
    ...(costUsd === undefined ? [] : [money(costUsd)]),
    ...Object.keys(usage.byModel),
    ...(delegated === undefined ? [] : [delegatedText(delegated)]),
  ];
  return parts.join(' · ');
}

function delegatedText({ runs, totalTokens }: ModelUsage & { readonly runs: number }): string {
  return `${thousands(totalTokens)} tokens of it by ${count(runs, 'sub-agent')}`;
}

function money(usd: number): string {
  return `$${usd >= 1 ? usd.toFixed(2) : usd.toFixed(4)}`;
}

function attemptsOf(checkpoint: Checkpoint): string | undefined {
  if (checkpoint.status !== 'in-progress') return undefined;
  const { attempts = 0, startsWithoutProgress: starts = 0 } = checkpoint;
  const parts = [
    ...(attempts === 0 ? [] : [`failed ${count(attempts, 'time')}`]),
    ...(starts === 0 ? [] : [`started ${count(starts, 'time')} without progress`]),
  ];
  return parts.length === 0 ? undefined : parts.join(', ');
}

function leaseLine({ lease, nowMs }: RunReport): Line {
  if (lease === undefined) return dim('this store does not tell');
  if (lease === null) return 'free';
  const name = holderName(lease);
  if (lease.isHolderGone) return [name, warn(' is gone'), dim(': whoever asks gets it')];
  const until = `until ${ago(lease.expiresAtMs, nowMs)}`;
  if (lease.state === 'held') return [accent(name), ` ${until}`];
  if (lease.state === 'late') return [name, warn(' is late'), `, free ${ago(lease.freeAtMs, nowMs)}`];
  return [name, warn(' let it expire'), `, ${ago(lease.expiresAtMs, nowMs)}`];
}

function endText({ finishReason, limit }: Extract<Checkpoint, { status: 'finished' }>): string {
  return limit === undefined ? finishReason : `${finishReason}: ${limit.name} ${limit.used} of ${limit.max}`;
}

/* ── What happened ── */

function beforeLines({ before, id, command }: RunReport): Line[] {
  const parts = [
    ...(before.messages === 0 ? [] : [`${count(before.messages, 'message')} of the conversation before`]),
    ...(before.steps === 0 ? [] : [count(before.steps, 'earlier step')]),
  ];
  return parts.length === 0 ? [] : [dim(`… ${parts.join(', ')}: ${command('show', id, '--all')}`), ''];
}

function heldInputLines({ heldInput }: Checkpoint): Line[] {
  const amount = count(heldInput.length, 'message waits', 'messages wait');
  return heldInput.length === 0 ? [] : [warn(`${amount} for the open calls, and comes next`), ''];
}

function errorLines({ checkpoint, nowMs }: RunReport): Line[] {
  const error = checkpoint.status === 'in-progress' ? checkpoint.lastError : undefined;
  if (error === undefined) return [];
  const when = error.failedAt === undefined ? '' : `  ${ago(error.failedAt, nowMs)}`;
  const again = error.retryable ? 'the same call may succeed later' : 'it would fail the same way again';
  const name = error.code === undefined ? error.name : `${error.name} [${error.code}]`;
  return [[bad('✗ '), error.message], dim(`  ${name}${when}, ${again}`), ''];
}

/* ── What to decide ── */

function approvalLines(report: RunReport): Line[] {
  return report.approvals.flatMap((approval) => [...approvalOf(approval, report), '']);
}

function approvalOf(approval: WaitingApproval, { nowMs, width, command }: RunReport): Line[] {
  const { id, kind, toolName, args, question, subagentPath = [], createdAt, expiresAt } = approval;
  const expiry = expiresAt === undefined ? '' : `, expires ${ago(expiresAt, nowMs)}`;
  const inside = subagentPath.length === 0 ? '' : ` in ${subagentPath.join(' › ')}`;
  const head: Piece[] = [warn('◆ '), strong(titles[kind]), ' ', accent(toolName), inside];
  const asked = question?.text;
  return [
    [...head, dim(`  since ${ago(createdAt, nowMs)}${expiry}`)],
    ...(asked === undefined ? valueLines(args, '    ', width) : valueLines(asked, '    ', width)),
    ...(question?.options ?? []).map((option): Line => ['    - ', option]),
    ...(kind === 'question'
      ? [command('approvals', 'approve', id, '--answer', '<text>')]
      : [command('approvals', 'approve', id), command('approvals', 'reject', id, '--note', '<why>')]
    ).map((line): Line => ['  ', whole(line)]),
  ];
}

const titles = {
  tool: 'May it call',
  question: 'It asks, through',
  interrupted: 'It may have run already. Run it again?',
} as const;

/* ── What to do ── */

function nextLines(report: RunReport, state: RunState): Line[] {
  const next = nextStep(report, state);
  return next === undefined ? [] : [[dim('next  '), next.sentence], ...next.commands.map(indented)];
}

interface NextStep {
  readonly sentence: string;
  readonly commands: readonly string[];
}

function nextStep({ id, checkpoint, command }: RunReport, state: RunState): NextStep | undefined {
  const resume = command('resume', id);
  const discard = command('discard', id);
  switch (state) {
    case 'running':
      return { sentence: 'It executes now. Look on:', commands: [command('runs', 'watch', id)] };
    case 'interrupted':
      return { sentence: 'A process with agent.recover() finishes it. By hand:', commands: [resume] };
    case 'failed': {
      const isFinal = checkpoint.status === 'in-progress' && checkpoint.lastError?.retryable === false;
      const sentence = isFinal
        ? 'Mend the cause, then continue it, or drop it:'
        : 'A process with agent.recover() tries again. By hand:';
      return { sentence, commands: isFinal ? [resume, discard] : [resume] };
    }
    case 'parked':
      return { sentence: 'recover() gave up on it. Mend the cause, then:', commands: [resume, discard] };
    case 'aborted':
      return { sentence: 'A person stopped it. Continue or drop it:', commands: [resume, discard] };
    case 'awaiting-approval':
      return { sentence: 'A person decides; when the last decision is made, the run goes on.', commands: [] };
    case 'finished':
    case 'damaged':
      return undefined;
  }
}

function indented(line: string): Line {
  return ['      ', whole(line)];
}
