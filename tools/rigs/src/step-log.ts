/** What savers asked for and were told (`workers/step-log.mjs`), and whether a store still has it. */
import fs from 'node:fs';
import type { FullAgentStore } from '@lousho/contract';
import { firstStep, nextStep } from '../workers/stepped-run.mjs';

export interface StepLine {
  /** By a clock that all processes share. */
  readonly atMs: number;
  readonly kind: 'asked' | 'acknowledged' | 'rejected' | 'found' | 'done' | 'failed';
  readonly id?: string;
  readonly step?: number;
  readonly code?: string;
}

export function readStepLog<Line = StepLine>(file: string): readonly Line[] {
  if (!fs.existsSync(file)) return [];
  const lines = fs.readFileSync(file, 'utf8').split('\n');
  return lines.slice(0, -1).map((line) => JSON.parse(line) as Line);
}

export function sharedClockMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

export interface CheckOptions {
  /** Answers after this moment do not count: those of a disk whose power was just being cut. */
  readonly untilMs?: number;
}

/** A sentence for each broken promise. Empty: everything that was acknowledged is there, whole, and nothing that was refused. */
export async function findStepLosses(
  store: FullAgentStore,
  log: readonly StepLine[],
  { untilMs = Infinity }: CheckOptions = {},
): Promise<readonly string[]> {
  const ids = [...new Set(log.flatMap(({ id }) => (id === undefined ? [] : [id])))];
  const losses: string[] = [];
  for (const id of ids) {
    const own = log.filter((line) => line.id === id && (line.kind === 'asked' || line.atMs <= untilMs));
    losses.push(...findAnswersThatLied(id, own), ...(await findLossesOf(store, id, own)));
  }
  return losses;
}

/** After a rejected save there is the state before it. */
function findAnswersThatLied(id: string, lines: readonly StepLine[]): readonly string[] {
  let acknowledged = 0;
  const lies: string[] = [];
  for (const { kind, step = 0 } of lines) {
    if (kind === 'acknowledged') acknowledged = step;
    if (kind === 'found' && step !== acknowledged)
      lies.push(
        `"${id}" was at step ${step} after a rejected save, and ${acknowledged} was acknowledged last`,
      );
  }
  return lies;
}

async function findLossesOf(
  store: FullAgentStore,
  id: string,
  lines: readonly StepLine[],
): Promise<readonly string[]> {
  const least = Math.max(
    0,
    ...lines.filter(({ kind }) => kind === 'acknowledged').map(({ step = 0 }) => step),
  );
  // A save that nobody was told about may have arrived, or not.
  const last = lines.findLast(
    ({ kind }) => kind === 'asked' || kind === 'acknowledged' || kind === 'rejected',
  );
  const most = Math.max(least, last?.kind === 'asked' ? (last.step ?? 0) : 0);
  let found;
  try {
    found = await store.checkpoints.load(id);
    const [newest] = await store.checkpoints.history(id, { limit: 1 });
    if (newest?.step !== found?.stepIndex) return [`the history of "${id}" ends at step ${newest?.step}`];
  } catch (error) {
    return [`"${id}" cannot be read: ${String(error)}`];
  }
  const step = found?.stepIndex ?? 0;
  if (step < least) return [`"${id}" is at step ${step}, and step ${least} was acknowledged`];
  if (step > most) return [`"${id}" is at step ${step}, and nobody asked for more than ${most}`];
  const texts = (found?.messages ?? []).map(({ content }) => JSON.stringify(content));
  const isWhole =
    texts.length === (step === 0 ? 0 : step + 1) && texts.every((text, n) => text.includes(`message ${n}"`));
  return isWhole ? [] : [`"${id}" at step ${step} has other messages than were saved`];
}

/** Every run goes on from where it is, and the log says so. @throws when one does not */
export async function saveOneMore({ checkpoints }: FullAgentStore, logPath: string): Promise<void> {
  const ids = new Set(readStepLog(logPath).flatMap(({ id }) => (id === undefined ? [] : [id])));
  for (const id of ids) {
    const next = nextStep((await checkpoints.load(id)) ?? firstStep());
    const write = (kind: StepLine['kind']): void => {
      const line: StepLine = { atMs: sharedClockMs(), kind, id, step: next.stepIndex };
      fs.appendFileSync(logPath, `${JSON.stringify(line)}\n`);
    };
    write('asked');
    await checkpoints.save(id, next);
    write('acknowledged');
  }
}
