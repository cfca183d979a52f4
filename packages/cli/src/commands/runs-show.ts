/** `lousho show <id>`, also `lousho runs show <id>`: everything about one run, and what to do about it. */
import { getCheckpointHistory, type Checkpoint, type CheckpointStore } from '@lousho/contract';
import type { Cli } from '../cli.ts';
import type { Context } from '../context.ts';
import { findRun, type FoundRun } from '../find-run.ts';
import { heldLeases } from '../leases.ts';
import { reportLines, runStateOf, usageText, type RunReport } from '../run-report.ts';
import { timeline, type TimelineEntry } from '../timeline.ts';
import { dim, good, strong } from '../terminal/styled-line.ts';
import { ago, count } from '../terminal/words.ts';
import { approvalsOf } from '../waiting-approvals.ts';

interface ShowOptions {
  /** Every step, and the conversation before this run. */
  readonly all?: boolean | undefined;
  /** Whole arguments, results and texts. */
  readonly full?: boolean | undefined;
}

/** More than fits onto a screen; what a person looks for stands at the end. */
const SHOWN_ENTRIES = 30;

export function registerShow(cli: Cli): void {
  for (const parent of [cli.program, cli.group('runs', 'the runs of a store')])
    parent
      .command('show')
      .description('one run, step by step, and what to do about it')
      .argument('<id>', 'of a run, a session or an approval')
      .option('--all', 'every step, and the conversation before')
      .option('--full', 'whole arguments, results and texts')
      .action(cli.action((context, id: string, options: ShowOptions) => showRun(context, id, options)));
}

async function showRun(context: Context, id: string, options: ShowOptions): Promise<void> {
  const store = await context.store();
  const found = await findRun(store, id);
  if (found.type === 'session') return showSession(context, found, options);
  const { checkpointId, checkpoint, session } = found;
  const leases = store.checkpoints && (await heldLeases(store.checkpoints, context.nowMs));
  const lease = leases && (leases.find((one) => one.id === checkpointId) ?? null);
  const approvals = await approvalsOf(store, checkpoint);
  const { out, nowMs } = context;
  if (out.json) {
    const state = runStateOf({ checkpoint, lease });
    return out.document({
      id: found.id,
      kind: found.kind,
      checkpointId,
      state,
      lease,
      approvals,
      checkpoint,
      session,
    });
  }
  const savedAt = await saveTimes(store.checkpoints, checkpointId);
  const { entries, before } = entriesOf(checkpoint, options, {
    width: out.columns,
    stepNote: (step) => savedAt.get(step) && ago(savedAt.get(step), nowMs),
  });
  const report: RunReport = {
    ...{ id: found.id, checkpointId, checkpoint, session, lease, approvals, entries, before, nowMs },
    width: out.columns,
    command: (...words) => context.command(...words),
  };
  await out.lines(reportLines(report));
}

function entriesOf(
  checkpoint: Checkpoint,
  { all = false, full = false }: ShowOptions,
  { width, stepNote }: { readonly width: number; readonly stepNote: (step: number) => string | undefined },
): Pick<RunReport, 'entries' | 'before'> {
  const start = all ? 0 : checkpoint.runInput.start;
  const entries = timeline(checkpoint, start, { full, width, stepNote });
  const shown = all ? entries : entries.slice(-SHOWN_ENTRIES);
  const hidden = entries.slice(0, entries.length - shown.length);
  const steps = hidden.filter(({ step }) => step !== undefined).length;
  const messages = checkpoint.messages.slice(0, start).filter(({ role }) => role !== 'system').length;
  return { entries: shown, before: { messages, steps } };
}

/** When each step was saved first, as far as the history goes back. */
async function saveTimes(
  store: CheckpointStore | undefined,
  checkpointId: string,
): Promise<ReadonlyMap<number, string>> {
  const history = (store && (await getCheckpointHistory(store, checkpointId))) ?? [];
  return new Map(history.map(({ step, savedAt }) => [step, savedAt]));
}

/** A session whose last turn is committed. */
async function showSession(
  { out, nowMs }: Context,
  { id, session }: Extract<FoundRun, { type: 'session' }>,
  { all = false, full = false }: ShowOptions,
): Promise<void> {
  if (out.json) return out.document({ id, kind: 'session', state: 'finished', session });
  const { messages, turn, usage, savedAt, lastTurn } = session;
  const stepIndex = lastTurn?.stepIndex ?? 0;
  const start = all ? 0 : (lastTurn?.runInput.start ?? 0);
  const entries: TimelineEntry[] = timeline({ messages, stepIndex }, start, { full, width: out.columns });
  await out.lines([
    [strong(id), '  ', good('session at rest')],
    [dim('  turns     '), count(turn, 'turn')],
    [dim('  saved     '), ago(savedAt, nowMs), dim(`  ${savedAt}`)],
    [dim('  usage     '), usageText(usage)],
    ...(lastTurn === undefined ? [] : [[dim('  ended     '), lastTurn.finishReason]]),
    '',
    ...(start === 0 ? [] : [dim(`… ${count(start, 'message')} of earlier turns`), '']),
    ...entries.flatMap(({ lines }) => [...lines, '']),
  ]);
}
